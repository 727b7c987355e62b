#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>

#include "lib/base/os/shared_memory.hpp"
#include "lib/base/result.hpp"
#include "lib/ps/row_type.hpp"

namespace hips::ps {

/// How an access to a row ended.
enum class Found : std::uint8_t {
  kHere,
  kAbsent,
  kLatchLost,  ///< `given_up` was true before the latch was free: its holder may be dead
};

/// The rows that a node has, in memory that all its ranks map: a hash table that grows by one bucket at a time (linear
/// hashing), and slots for the rows.
///
///     header | buckets: latch, 8 x (tag, slot), overflow bucket | overflow buckets | slots: key, row
///
/// Every rank reads and updates rows, under the latch of the row's bucket. One process, the owner, inserts and takes rows.
///
/// Cost     an access: two atomic operations, about three cache lines. A row takes its bytes, 8 for the key and about 15 of
///          the index; a key that is absent takes nothing. What has been taken leaves a slot for another row.
/// Threads  with(): any, of any process. insert() and take(): one at a time.
/// Source   Litwin, Linear hashing (VLDB 1980).
class RowStore {
 public:
  /// Makes an empty store, owned by this process. `max_rows` is address space only.
  ///
  /// Errors   kInvalidArgument: more than kMostRows rows. Those of SharedMemory::create().
  /// `alignment` of rows: 8 or 16.
  static Result<RowStore> create(std::size_t row_bytes, std::uint64_t max_rows, std::size_t alignment = 8);
  /// Maps the store of another process of this node.
  static Result<RowStore> attach(const SharedMemoryName& name);

  static constexpr std::uint64_t kMostRows = (std::uint64_t{1} << 32U) - 2;

  /// Asked while a latch is not free for long: true ends the access with kLatchLost.
  void set_given_up(std::function<bool()> given_up) { given_up_ = std::move(given_up); }
  [[nodiscard]] const SharedMemoryName& name() const { return memory_.name(); }

  /// Calls use(row) with the row of `key`, if it is here, while no other rank accesses it. `hash` is mixed(key).
  template <typename Use>
  Found with(Key key, std::uint64_t hash, Use&& use) const {
    Bucket* const locked = lock_bucket(hash);
    if (locked == nullptr) return Found::kLatchLost;
    std::byte* const row = find(locked, hash, key);
    if (row != nullptr) use(row);
    locked->latch.store(0, std::memory_order_release);
    return row != nullptr ? Found::kHere : Found::kAbsent;
  }
  template <typename Use>
  Found with(Key key, Use&& use) const {
    return with(key, mixed(key), std::forward<Use>(use));
  }
  /// Fetches what with() is going to read first.
  void prefetch(std::uint64_t hash) const { __builtin_prefetch(bucket_of(hash, state()), 1); }

  /// A number for all ranks of the node.
  [[nodiscard]] std::uint32_t mark() const { return header_->mark.load(std::memory_order_acquire); }

  // The owner only.

  void set_mark(std::uint32_t mark) { header_->mark.store(mark, std::memory_order_release); }

  /// Adds a row that is absent.
  ///
  /// Errors   kOutOfMemory: there are max_rows. kPeerLost: a latch is lost.
  Status insert(Key key, const std::byte* row);
  /// Copies the row to `row` and removes it.
  Found take(Key key, std::byte* row);
  [[nodiscard]] std::uint64_t num_rows() const { return header_->num_rows; }
  [[nodiscard]] std::uint64_t max_rows() const { return header_->max_rows; }
  /// Bytes of memory that the rows so far have needed.
  [[nodiscard]] std::uint64_t used_bytes() const;

 private:
  static constexpr std::size_t kEntries = 8;        ///< of a bucket
  static constexpr std::uint64_t kMeanEntries = 4;  ///< a bucket is split when there are more on average

  struct alignas(64) Bucket {
    std::atomic<std::uint32_t> latch;
    std::uint32_t next;  ///< overflow bucket, counted from 1; 0: none
    std::array<std::uint32_t, kEntries> slots;
    std::array<std::uint16_t, kEntries> tags;
    std::uint8_t count;
  };
  static_assert(sizeof(Bucket) == 64);

  struct Header {
    std::uint64_t row_bytes, row_offset, slot_bytes, max_rows, max_buckets;
    // The owner's.
    std::uint64_t num_rows, num_slots, free_slot, num_overflow, free_overflow;
    std::atomic<std::uint32_t> mark;
    alignas(64) std::atomic<std::uint64_t> state;
  };

  /// Where an entry is.
  struct Entry {
    Bucket* bucket = nullptr;
    std::size_t at = 0;
  };

  static Result<RowStore> over(SharedMemory memory);

  /// How many buckets there are, and above that the mask of the hash's bits that number them.
  [[nodiscard]] std::uint64_t state() const { return header_->state.load(std::memory_order_acquire); }
  [[nodiscard]] static std::uint64_t state_of(std::uint64_t num_buckets) {
    return (2 * std::bit_floor(num_buckets) - 1) << 32U | num_buckets;
  }
  [[nodiscard]] std::uint64_t num_buckets() const { return state() & UINT32_MAX; }
  [[nodiscard]] Bucket* bucket_of(std::uint64_t hash, std::uint64_t state) const {
    const std::uint64_t mask = state >> 32U, wide = hash & mask;
    return buckets_ + (wide < (state & UINT32_MAX) ? wide : wide & mask >> 1U);
  }
  /// The latched bucket of a hash; null if the latch is lost.
  [[nodiscard]] Bucket* lock_bucket(std::uint64_t hash) const {
    while (true) {
      const std::uint64_t before = state();
      Bucket* const bucket = bucket_of(hash, before);
      std::uint32_t unlocked = 0;
      if (!bucket->latch.compare_exchange_strong(unlocked, 1, std::memory_order_acquire) &&
          !lock_slowly(*bucket))
        return nullptr;
      // The bucket may have been split meanwhile.
      const std::uint64_t now = state();
      if (now == before || bucket_of(hash, now) == bucket) return bucket;
      bucket->latch.store(0, std::memory_order_release);
    }
  }
  [[nodiscard]] bool lock_slowly(Bucket& bucket) const;
  [[nodiscard]] std::byte* slot(std::uint64_t number) const { return slots_ + number * slot_bytes_; }
  static std::uint16_t tag_of(std::uint64_t hash) { return static_cast<std::uint16_t>(hash >> 48U); }
  static Key& key_of(std::byte* slot) { return *reinterpret_cast<Key*>(slot); }
  /// The row in a latched bucket and those behind it; null: absent.
  [[nodiscard]] std::byte* find(const Bucket* bucket, std::uint64_t hash, Key key) const {
    // All tags are compared at once: which of them is the one is not to be foreseen.
    using Tags = std::uint16_t __attribute__((vector_size(2 * kEntries)));
    const Tags wanted = Tags{} + tag_of(hash);
    while (true) {
      Tags tags;
      std::memcpy(&tags, bucket->tags.data(), sizeof tags);
      const auto like = std::bit_cast<std::array<std::uint64_t, 2>>(tags == wanted);
      for (std::size_t half = 0; half < 2; ++half) {
        for (std::uint64_t left = like[half]; left != 0;) {
          const int bit = std::countr_zero(left);
          const std::size_t i = 4 * half + static_cast<std::size_t>(bit) / 16;
          left &= ~(std::uint64_t{0xffff} << bit);
          if (i >= bucket->count) break;
          std::byte* const found = slot(bucket->slots[i]);
          if (key_of(found) == key) return found + row_offset_;
        }
      }
      if (bucket->next == 0) return nullptr;
      bucket = overflow_ + bucket->next - 1;
    }
  }
  Status add_entry(Bucket* bucket, std::uint16_t tag, std::uint32_t slot);
  void remove_entry(Bucket* bucket, Entry entry);
  Status split();

  SharedMemory memory_;
  Header* header_ = nullptr;
  Bucket* buckets_ = nullptr;
  Bucket* overflow_ = nullptr;
  std::byte* slots_ = nullptr;
  std::size_t slot_bytes_ = 0, row_offset_ = 0;
  std::function<bool()> given_up_ = [] { return false; };
};

}  // namespace hips::ps
