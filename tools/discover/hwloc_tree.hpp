#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.hpp"
#include "tools/discover/server.hpp"

struct hwloc_topology;

namespace hips::discover {

/// An RDMA device or a network interface.
struct NamedDevice {
  std::string name;  ///< "mlx5_0", "eth2"
  bool rdma = false;
  DeviceLocation location;
};

/// hwloc's description of a server.
class HwlocTree {
 public:
  /// Describes this machine.
  ///
  /// Errors   kSystem: hwloc fails.
  static Result<HwlocTree> of_machine();
  /// Reads hwloc's XML; `name` is the name of the file for messages.
  ///
  /// Errors   kInvalidArgument: the text is no XML of hwloc, or is nested too deeply.
  static Result<HwlocTree> of_xml(const std::string& name, const std::string& text);

  /// Packages, cores, CPUs and NUMA nodes.
  void describe(Server& server) const;
  /// RDMA devices and network interfaces, in the order of the tree.
  [[nodiscard]] std::vector<NamedDevice> devices() const;
  /// The host name, if hwloc has recorded it.
  [[nodiscard]] std::optional<std::string> host() const;

 private:
  struct Destroy {
    void operator()(hwloc_topology* topology) const;
  };
  std::unique_ptr<hwloc_topology, Destroy> topology_;
};

}  // namespace hips::discover
