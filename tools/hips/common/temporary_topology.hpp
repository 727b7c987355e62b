#pragma once

#include <string>

namespace hips::cli {

/// A topology in a form that programs elsewhere read without the options that told how to read it: a spec of a family, or a topology
/// file without names in the folder for temporary files, which the destructor removes.
class TemporaryTopology {
 public:
  /// Errors   (thrown) those of topology::load_topology() and write_topology_file().
  explicit TemporaryTopology(const std::string& spec);
  ~TemporaryTopology();
  TemporaryTopology(const TemporaryTopology&) = delete;
  TemporaryTopology& operator=(const TemporaryTopology&) = delete;

  [[nodiscard]] const std::string& spec() const { return spec_; }

 private:
  std::string spec_, path_;
};

}  // namespace hips::cli
