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

/// Memory that the user has registered. It stays alive while an operation holds it.
struct UserRange {
  std::uint64_t id = 0;  ///< never given twice, unlike addresses
  std::byte* address = nullptr;
  std::size_t bytes = 0;
  bool allocated = false;             ///< by MemoryRegistry::allocate()
  SharedMemory segment;               ///< that other processes can map; holds nothing where they cannot
  std::atomic<std::int32_t> uses{0};  ///< buffers of running operations that lie in it
};

/// Someone who registers ranges with devices, and has to forget one that is gone.
class RangeUser {
 public:
  virtual ~RangeUser() = default;
  /// Any thread. May put the work off, because ids are not given twice.
  virtual void forget(std::uint64_t range) = 0;
};

/// The memory of this process that the user has registered: hips_mem_register and its kin.
///
/// Ranges only; devices learn of one when an operation first uses it. No two overlap, so that a buffer lies
/// in one or in none.
///
/// Threads  any.
/// Cost     hold(): one load while nothing is registered, else a lock and O(log n); once for each buffer of
///          an operation, never for a segment.
class MemoryRegistry {
 public:
  MemoryRegistry() = default;
  MemoryRegistry(const MemoryRegistry&) = delete;
  MemoryRegistry& operator=(const MemoryRegistry&) = delete;

  /// The one of this process; never destroyed, because buffers may be static objects.
  static MemoryRegistry& process();

  /// Errors   kInvalidArgument: null, 0 bytes, the end of the address space, overlap with another range.
  Result<std::uint64_t> add(std::byte* address, std::size_t bytes);
  /// Errors   kInvalidArgument: unknown, or removed before; memory of allocate(); an operation runs on it.
  Status remove(std::uint64_t id);

  /// From this size on allocate() gives memory that other processes of the host can map.
  static constexpr std::size_t kLeastShared = 64U << 10U;
  /// As long as there are fewer of these: each keeps a descriptor open, of which a process has 1024 or so.
  static constexpr std::size_t kMostShared = 128;

  /// Page-aligned zeroed memory, registered. Its pages are not touched here: whoever touches one first has it
  /// on its own NUMA node.
  ///
  /// Errors   kInvalidArgument: 0 bytes. kOutOfMemory.
  Result<std::byte*> allocate(std::size_t bytes);
  /// Errors   kInvalidArgument: not from allocate(), or freed before; an operation runs on it.
  Status free(std::byte* address);

  /// Does allocated memory begin here?
  bool has_allocated(const std::byte* address);

  /// The range that holds all of [address, address + bytes), held until drop(); null where none does.
  UserRange* hold(const std::byte* address, std::size_t bytes);
  static void drop(UserRange* range);

  /// A user outlives its remove_user().
  void add_user(RangeUser* user);
  void remove_user(RangeUser* user);
  [[nodiscard]] std::size_t num_ranges() const { return num_ranges_.load(std::memory_order_relaxed); }

 private:
  using Ranges = std::map<std::uintptr_t, std::unique_ptr<UserRange>>;  ///< by first byte
  Result<std::uint64_t> insert(std::byte* address, std::size_t bytes, bool allocated,
                               SharedMemory segment = {});
  /// Memory that others can map, or one that holds nothing: then private pages have to do.
  SharedMemory make_segment(std::size_t bytes);
  /// Takes the range out; with the mutex held.
  Status take(Ranges::iterator range, const char* call, std::unique_ptr<UserRange>& taken);
  void tell_users(std::uint64_t range);

  std::mutex mutex_;  ///< guards ranges_, and hold() against take()
  Ranges ranges_;
  std::uint64_t next_id_ = 1;
  std::atomic<std::size_t> num_ranges_{0};
  std::atomic<std::size_t> num_shared_{0};
  std::mutex users_mutex_;
  std::vector<RangeUser*> users_;
};

}  // namespace hips
