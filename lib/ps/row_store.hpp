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
/// What is said of kLatchLost.
Status latch_lost();

/// The rows that a node has, in memory that all its ranks map: a hash table that grows by one bucket at a time (linear
/// hashing), and slots for the rows.
///
///     header | buckets: version, 8 x (tag, slot), overflow bucket | overflow buckets | slots: key, row
///
/// Every rank reads and updates rows, and one process, the owner, inserts and takes them. The version of a bucket is odd while it
/// is latched: by who updates a row, inserts or takes. Who copies a short row latches nothing: it copies again if the version has
/// changed meanwhile (a sequence lock).
///
/// Cost     an access: about three cache lines; an update one atomic operation, a copy of a short row none. A row takes its
///          bytes, 8 for the key and about 15 of the index; a key that is absent takes nothing. What has been taken leaves a
///          slot for another row.
/// Threads  expect(), look(), copy(), with(): any, of any process. insert() and take(): one at a time.
/// Source   Litwin, Linear hashing (VLDB 1980). Boehm, Can seqlocks get along with programming language memory models? (2012).
class RowStore {
  struct Bucket;

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

  /// Where the row of a key is, as far as one can see without the latch.
  class Place {
   public:
    [[nodiscard]] std::uint64_t hash() const { return hash_; }

   private:
    friend class RowStore;
    std::uint64_t hash_;  ///< mixed(key)
    Bucket* bucket_;
    std::uint64_t version_;  ///< of the bucket, when the row was in it
    std::byte* row_;         ///< null: not found
  };
  /// Begins to look for a row: its bucket is on the way to the cache. look() goes on with it, and then the row is. So several rows
  /// come at the same time.
  [[gnu::always_inline]] void expect(Key key, Place& place) const {
    place.hash_ = mixed(key);
    place.bucket_ = bucket_of(place.hash_, state());
    __builtin_prefetch(place.bucket_);
  }
  [[gnu::always_inline]] void look(Key key, Place& place) const {
    place.version_ = place.bucket_->version.load(std::memory_order_acquire);
    place.row_ = find_in(*place.bucket_, place.hash_, key);
    if (place.row_ == nullptr) return;
    __builtin_prefetch(place.row_);
    for (std::size_t at = 64; at < fetched_bytes_; at += 64) __builtin_prefetch(place.row_ + at);
  }
  [[nodiscard]] Place place_of(Key key) const {
    Place place;
    expect(key, place);
    look(key, place);
    return place;
  }

  /// Fetches the bucket of a key.
  void prefetch(Key key) const { __builtin_prefetch(bucket_of(mixed(key), state())); }

  /// Calls use(row) with the row of `key`, if it is here, while no other rank accesses it.
  template <typename Use>
  [[gnu::always_inline]] Found with(Key key, const Place& place, Use&& use) const {
    std::uint64_t version = place.version_;
    // The bucket is as it was when the row was found in it, and nobody else changes it now.
    if (place.row_ == nullptr || is_latched(version) ||
        !place.bucket_->version.compare_exchange_strong(version, version + 1, std::memory_order_acquire))
      return search(key, place.hash_, std::forward<Use>(use));
    store_fence();
    use(place.row_);
    place.bucket_->version.store(version + 2, std::memory_order_release);
    return Found::kHere;
  }
  template <typename Use>
  Found with(Key key, Use&& use) const {
    return search(key, mixed(key), std::forward<Use>(use));
  }
  /// Copies the first `bytes` bytes of the row to `out`.
  [[gnu::always_inline]] Found copy(Key key, const Place& place, std::byte* out, std::size_t bytes) const {
    if (!is_latched(place.version_) && bytes <= kShortRow) {
      const bool is_here = place.row_ != nullptr;
      if (is_here) copy_unlatched(out, place.row_, bytes);
      const bool is_whole = is_here || !has_overflow(*place.bucket_);
      load_fence();
      if (is_whole && place.bucket_->version.load(std::memory_order_relaxed) == place.version_) {
        if (is_here) return Found::kHere;
        // It may be in another bucket since a split, which shows before the bucket is unlatched.
        if (bucket_of(place.hash_, state()) == place.bucket_) return Found::kAbsent;
      }
    }
    return search(key, place.hash_, [&](const std::byte* row) { std::memcpy(out, row, bytes); });
  }
  /// Of a row: while it stays the same, the row does; it may change without the row.
  struct Version {
    const void* bucket = nullptr;
    std::uint64_t number = 0;
    friend bool operator==(const Version&, const Version&) = default;
  };
  /// Copies the row to `out` and says of which version it is.
  Found copy(Key key, std::byte* out, Version& version) const;
  [[nodiscard]] Found contains(Key key, const Place& place) const {
    std::byte none{};
    return copy(key, place, &none, 0);
  }

  // Once nobody uses the store any more; so without latches, which a rank that died may hold.

  /// Calls use(key, row) with each row. One that a rank was changing when it died may be half changed.
  template <typename Use>
  void for_each(Use&& use) const {
    for (std::uint64_t i = 0; i < num_buckets(); ++i) {
      for (const Bucket* bucket = buckets_ + i;; bucket = overflow_ + bucket->next - 1) {
        for (std::size_t at = 0; at < bucket->count; ++at) {
          std::byte* const found = slot(bucket->slots[at]);
          if (bucket_of(mixed(key_of(found)), state()) != buckets_ + i)
            continue;  // being taken when its owner died
          use(static_cast<Key>(key_of(found)), static_cast<const std::byte*>(found + row_offset_));
        }
        if (bucket->next == 0) break;
      }
    }
  }
  /// The row of a key; null: absent.
  [[nodiscard]] const std::byte* row_at_rest(Key key) const {
    const std::uint64_t hash = mixed(key);
    return find(bucket_of(hash, state()), hash, key);
  }

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
  static constexpr std::size_t kShortRow = 512;     ///< copied without a latch

  struct alignas(64) Bucket {
    std::atomic<std::uint64_t> version;  ///< that of an overflow bucket is not used
    std::array<std::uint32_t, kEntries> slots;
    std::array<std::uint16_t, kEntries> tags;
    std::uint32_t next;  ///< overflow bucket, counted from 1; 0: none
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
    const std::uint64_t mask = state >> 32U;
    // Which of two it is is not to be foreseen, so there is no branch.
    const auto is_beyond = static_cast<unsigned>((hash & mask) >= (state & UINT32_MAX));
    return buckets_ + (hash & mask >> is_beyond);
  }
  static bool is_latched(std::uint64_t version) { return version % 2 != 0; }
  static bool latch(Bucket& bucket) {
    std::uint64_t version = bucket.version.load(std::memory_order_relaxed);
    if (is_latched(version) ||
        !bucket.version.compare_exchange_strong(version, version + 1, std::memory_order_acquire))
      return false;
    store_fence();
    return true;
  }
  static void unlatch(Bucket& bucket) {
    bucket.version.store(bucket.version.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  /// The latched bucket of a hash; null if the latch is lost.
  [[nodiscard]] Bucket* latch_bucket(std::uint64_t hash) const {
    while (true) {
      const std::uint64_t before = state();
      Bucket* const bucket = bucket_of(hash, before);
      if (!latch(*bucket) && !latch_slowly(*bucket)) return nullptr;
      // The bucket may have been split meanwhile.
      const std::uint64_t now = state();
      if (now == before || bucket_of(hash, now) == bucket) return bucket;
      unlatch(*bucket);
    }
  }
  [[nodiscard]] bool latch_slowly(Bucket& bucket) const;
  template <typename Use>
  Found search(Key key, std::uint64_t hash, Use&& use) const {
    Bucket* const latched = latch_bucket(hash);
    if (latched == nullptr) return Found::kLatchLost;
    std::byte* const row = find(latched, hash, key);
    if (row != nullptr) use(row);
    unlatch(*latched);
    return row != nullptr ? Found::kHere : Found::kAbsent;
  }
  [[nodiscard]] std::byte* slot(std::uint64_t number) const { return slots_ + number * slot_bytes_; }
  static std::uint16_t tag_of(std::uint64_t hash) { return static_cast<std::uint16_t>(hash >> 48U); }
  static Key& key_of(std::byte* slot) { return *reinterpret_cast<Key*>(slot); }
  /// The row in a latched bucket and those behind it; null: absent.
  [[nodiscard]] std::byte* find(const Bucket* bucket, std::uint64_t hash, Key key) const {
    while (true) {
      if (std::byte* const row = find_in(*bucket, hash, key)) return row;
      if (bucket->next == 0) return nullptr;
      bucket = overflow_ + bucket->next - 1;
    }
  }
#if defined(__SSE2__)
  static constexpr std::size_t kBitsOfTag = 2;
#else
  static constexpr std::size_t kBitsOfTag = 8;
#endif
  static constexpr std::uint64_t kOfTag = (1U << kBitsOfTag) - 1;
  /// kBitsOfTag bits for each of 8 tags: whether it is `wanted`.
  [[gnu::no_sanitize("thread")]] static std::uint64_t like(const std::uint16_t* tags, std::uint16_t wanted) {
    using Tags = std::uint16_t __attribute__((vector_size(2 * kEntries)));
    Tags have;
    __builtin_memcpy(&have, tags, sizeof have);
#if defined(__SSE2__)
    using Bytes = char __attribute__((vector_size(2 * kEntries)));
    return static_cast<unsigned>(__builtin_ia32_pmovmskb128(std::bit_cast<Bytes>(have == Tags{} + wanted)));
#else
    const auto same = std::bit_cast<std::array<std::uint64_t, 2> >(have == Tags{} + wanted);
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < kEntries; ++i)
      bits |= (same[i / 4] >> 16 * (i % 4) & kOfTag) << kBitsOfTag * i;
    return bits;
#endif
  }
  [[nodiscard, gnu::no_sanitize("thread")]] static bool has_overflow(const Bucket& bucket) {
    return bucket.next != 0;
  }
  /// The row in one bucket. Where the bucket is not latched, what this gives may be wrong, and its version has changed then: a
  /// slot's number is that of a slot at any time.
  [[nodiscard, gnu::no_sanitize("thread")]] std::byte* find_in(const Bucket& bucket, std::uint64_t hash,
                                                               Key key) const {
    // All tags are compared at once: which of them is the one is not to be foreseen.
    for (std::uint64_t left = like(bucket.tags.data(), tag_of(hash)); left != 0;) {
      const auto bit = static_cast<std::size_t>(std::countr_zero(left));
      const std::size_t i = bit / kBitsOfTag;
      if (i < bucket.count) {
        std::byte* const found = slot(bucket.slots[i]);
        if (key_of(found) == key) return found + row_offset_;
      }
      left &= ~(kOfTag << bit);
    }
    return nullptr;
  }
  /// Copies a row that others may be changing.
  [[gnu::no_sanitize("thread")]] static void copy_unlatched(std::byte* out, const std::byte* row,
                                                            std::size_t bytes) {
#ifdef __SANITIZE_THREAD__
    // It would look into memcpy().
    for (std::size_t i = 0; i < bytes; ++i) out[i] = *static_cast<const volatile std::byte*>(row + i);
#else
    // Short rows are common, and copied in less time than a call takes.
    if (bytes == 4) {
      std::memcpy(out, row, 4);
    } else {
      std::memcpy(out, row, bytes);
    }
#endif
  }
  // The sanitizers know no fences of the language.

  /// Others see what is stored before no later than what is stored after.
  static void store_fence() {
#if defined(__x86_64__)
    asm volatile("" ::: "memory");
#elif defined(__aarch64__)
    asm volatile("dmb ishst" ::: "memory");
#else
    std::atomic_thread_fence(std::memory_order_release);
#endif
  }
  /// What was loaded before is older than what is loaded after.
  static void load_fence() {
#if defined(__x86_64__)
    asm volatile("" ::: "memory");
#elif defined(__aarch64__)
    asm volatile("dmb ishld" ::: "memory");
#else
    std::atomic_thread_fence(std::memory_order_acquire);
#endif
  }
  static void prepare(const std::byte* begin, const std::byte* end, const std::byte* limit,
                      const std::byte*& ready);
  Status add_entry(Bucket* bucket, std::uint16_t tag, std::uint32_t slot);
  void remove_entry(Bucket* bucket, Entry entry);
  Status split();

  SharedMemory memory_;
  Header* header_ = nullptr;
  Bucket* buckets_ = nullptr;
  Bucket* overflow_ = nullptr;
  std::byte* slots_ = nullptr;
  std::size_t slot_bytes_ = 0, row_offset_ = 0;
  /// Of a row that is looked for. The processor itself foresees the rest of a long one.
  std::size_t fetched_bytes_ = 0;
  const std::byte *ready_buckets_ = nullptr, *ready_slots_ = nullptr;  ///< the owner's, of prepare()
  std::function<bool()> given_up_ = [] { return false; };
};

}  // namespace hips::ps
