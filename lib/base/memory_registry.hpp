#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <hips/status.hpp>

#include "lib/base/os/shared_memory.hpp"
#include "lib/base/result.hpp"

namespace hips {

/// A range of memory that the user has registered. It stays valid while an operation holds it.
struct UserRange {
  std::uint64_t id = 0;  ///< never reused, unlike addresses
  std::byte* address = nullptr;
  std::size_t bytes = 0;
  bool allocated = false;             ///< true if it comes from MemoryRegistry::allocate()
  bool used = false;                  ///< true if an operation has ever held it
  SharedMemory segment;               ///< for other processes to map; empty if they cannot
  std::atomic<std::int32_t> uses{0};  ///< number of buffers of outstanding operations in this range
};

/// An object that registers ranges with devices and must learn when one is removed.
class RangeListener {
 public:
  virtual ~RangeListener() = default;
  /// Called by any thread. The listener may defer the work, because ids are not reused.
  virtual void range_removed(std::uint64_t range) = 0;
};

/// The memory that the user of this process has registered (hips_mem_register, hips_mem_alloc).
///
/// It holds ranges only; a device registers a range when an operation first uses it. Ranges do not overlap,
/// so a buffer lies in at most one.
///
/// Threads  any.
/// Cost     hold(): one load while nothing is registered, otherwise a lock and O(log n). It is called once for each
///          buffer of an operation, never for a segment.
class MemoryRegistry {
 public:
  MemoryRegistry() = default;
  MemoryRegistry(const MemoryRegistry&) = delete;
  MemoryRegistry& operator=(const MemoryRegistry&) = delete;

  /// The registry of this process. It is never destroyed, because buffers may be static objects.
  static MemoryRegistry& process();

  /// Errors   kInvalidArgument: null, 0 bytes, beyond the address space, overlap with another range.
  Result<std::uint64_t> add(std::byte* address, std::size_t bytes);
  /// Errors   kInvalidArgument: unknown or already removed; memory of allocate(); in use by an operation.
  Status remove(std::uint64_t id);

  /// Smallest allocation that other processes of the node can map.
  static constexpr std::size_t kLeastShared = 64U << 10U;
  /// Largest number of such allocations: each keeps a descriptor open, and a process often has only 1024.
  static constexpr std::size_t kMostShared = 128;

  /// Allocates page-aligned zeroed memory and registers it. It does not touch the pages: the thread that
  /// touches a page first gets it on its own NUMA node.
  ///
  /// Errors   kInvalidArgument: 0 bytes. kOutOfMemory.
  Result<std::byte*> allocate(std::size_t bytes);
  /// Errors   kInvalidArgument: not from allocate(), or already freed; in use by an operation.
  Status free(std::byte* address);

  /// Number of allocations freed in a row since the last one that an operation had used.
  [[nodiscard]] std::size_t num_freed_unused() const {
    return num_freed_unused_.load(std::memory_order_relaxed);
  }

  /// Whether memory of allocate() begins at this address.
  bool has_allocated(const std::byte* address);

  /// Finds the range that contains [address, address + bytes) and holds it until drop(). Null if there is
  /// none.
  UserRange* hold(const std::byte* address, std::size_t bytes);
  static void drop(UserRange* range);

  /// A listener must exist until remove_listener() has returned.
  void add_listener(RangeListener* listener);
  void remove_listener(RangeListener* listener);
  [[nodiscard]] std::size_t num_ranges() const { return num_ranges_.load(std::memory_order_relaxed); }

 private:
  using Ranges = std::map<std::uintptr_t, std::unique_ptr<UserRange>>;  ///< by address of the first byte
  Result<std::uint64_t> insert(std::byte* address, std::size_t bytes, bool allocated,
                               SharedMemory segment = {});
  /// Creates memory that other processes can map. Empty if that fails: the caller then uses private pages.
  SharedMemory make_segment(std::size_t bytes);
  /// Removes the range from the map. The caller holds the mutex.
  Status take(Ranges::iterator range, const char* call, std::unique_ptr<UserRange>& taken);
  void notify_listeners(std::uint64_t range);

  std::mutex mutex_;  ///< guards ranges_, and orders hold() and take()
  Ranges ranges_;
  std::uint64_t next_id_ = 1;
  std::atomic<std::size_t> num_ranges_{0};
  std::atomic<std::size_t> num_shared_{0};
  std::atomic<std::size_t> num_freed_unused_{0};
  std::mutex listeners_mutex_;
  std::vector<RangeListener*> listeners_;
};

}  // namespace hips
