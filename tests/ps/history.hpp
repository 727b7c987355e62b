#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/ps/row_type.hpp"

namespace hips::ps::test {

/// What the workers of a table of counters saw: a row has a counter for each worker, and a worker's push adds 1 to its own.
/// Times are any numbers that rise.
class History {
 public:
  explicit History(std::size_t num_workers) : num_workers_(num_workers) {}

  struct Access {
    std::size_t worker = 0;
    Key key = 0;
    std::uint64_t begin = 0, end = 0;  ///< end: UINT64_MAX while outstanding
    bool is_push = false;
    std::uint64_t own_before = 0;      ///< pushes to the key that the worker had started before
    std::vector<std::uint64_t> row{};  ///< read
  };
  void add(Access access) { accesses_.push_back(std::move(access)); }
  /// Pushes of a worker to a key that may have taken place.
  [[nodiscard]] std::uint64_t num_unended_pushes(std::size_t worker, Key key) const;

  /// Nothing where the history is linearizable and keeps each worker's order per key; else what it breaks. One pass over the
  /// accesses of each key in the order of time.
  [[nodiscard]] std::optional<std::string> broken() const;

 private:
  std::size_t num_workers_;
  std::vector<Access> accesses_;
};

}  // namespace hips::ps::test
