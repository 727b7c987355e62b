#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/ps/row_type.hpp"

namespace hips::ps {

/// Which keys a rank has outstanding requests for, and to which node requests on a key go: to the one that answered the last one,
/// for the keys that were used last. Keys whose hashes collide share an entry.
///
/// While a request is outstanding, those that follow on its key go to the same node, and so keep their order. `hash` is mixed(key).
///
/// Cost     256 KiB.
/// Threads  may_be_outstanding(), num_outstanding(): any. begin() and end(): one at a time.
class RequestRoutes {
 public:
  static constexpr std::size_t kEntries = std::size_t{1} << 14U;
  static constexpr std::int32_t kToHome = -1;

  RequestRoutes() : entries_(kEntries) {}

  /// False: no request on the key is outstanding.
  [[nodiscard]] bool may_be_outstanding(std::uint64_t hash) const {
    return num_outstanding() != 0 &&
           entries_[hash % kEntries].outstanding.load(std::memory_order_relaxed) != 0;
  }
  [[nodiscard]] std::uint64_t num_outstanding() const {
    return num_outstanding_.load(std::memory_order_relaxed);
  }

  /// A request begins; gives the node that gets it, or kToHome.
  std::int32_t begin(Key key, std::uint64_t hash) {
    Entry& entry = entries_[hash % kEntries];
    if (entry.outstanding.load(std::memory_order_relaxed) == 0 && entry.key != key) {
      entry.key = key;
      entry.node = kToHome;
    }
    add(entry, 1);
    return entry.node;
  }
  /// It has been answered by a node; kToHome: the next one is for the home.
  void end(Key key, std::uint64_t hash, std::int32_t node) {
    Entry& entry = entries_[hash % kEntries];
    add(entry, -1);
    if (entry.outstanding.load(std::memory_order_relaxed) != 0) return;
    entry.key = key;
    entry.node = node;
  }

 private:
  struct Entry {
    Key key = 0;
    std::int32_t node = kToHome;
    std::atomic<std::uint32_t> outstanding{0};
  };
  static_assert(sizeof(Entry) == 16);

  void add(Entry& entry, int change) {
    // One thread at a time changes them.
    entry.outstanding.store(
        entry.outstanding.load(std::memory_order_relaxed) + static_cast<std::uint32_t>(change),
        std::memory_order_relaxed);
    num_outstanding_.store(num_outstanding() + static_cast<std::uint64_t>(change), std::memory_order_relaxed);
  }

  std::vector<Entry> entries_;
  std::atomic<std::uint64_t> num_outstanding_{0};
};

}  // namespace hips::ps
