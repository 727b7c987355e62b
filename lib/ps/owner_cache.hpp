#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/ps/row_type.hpp"

namespace hips::ps {

/// Which nodes owned rows when they answered this rank, for some keys: those that were used last. A hint, which may be old.
///
/// Cost     256 KiB when it is first used.
/// Threads  one at a time.
class OwnerCache {
 public:
  static constexpr std::int32_t kUnknown = -1;

  /// `hash` is mixed(key), here and below.
  [[nodiscard]] std::int32_t owner_of(Key key, std::uint64_t hash) const {
    if (entries_.empty()) return kUnknown;
    const Entry& entry = entries_[hash % kEntries];
    return entry.key == key ? entry.node : kUnknown;
  }
  void learn(Key key, std::uint64_t hash, std::int32_t node) {
    if (entries_.empty()) entries_.resize(kEntries);
    entries_[hash % kEntries] = {.key = key, .node = node};
  }
  void forget(Key key, std::uint64_t hash) {
    if (owner_of(key, hash) != kUnknown) entries_[hash % kEntries] = {};
  }

 private:
  static constexpr std::size_t kEntries = std::size_t{1} << 14U;
  struct Entry {
    Key key = 0;
    std::int32_t node = kUnknown;
  };
  std::vector<Entry> entries_;
};

}  // namespace hips::ps
