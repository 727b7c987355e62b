#include "lib/ps/row_store.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lib/base/wait/waiter.hpp"

namespace hips::ps {
namespace {

constexpr std::size_t kHeaderBytes = 4096;
constexpr std::uint64_t kNoSlot = UINT64_MAX;

}  // namespace

Status latch_lost() {
  return Status::error(Code::kPeerLost, "a rank ended while it used a row of the table");
}

Result<RowStore> RowStore::create(std::size_t row_bytes, std::uint64_t max_rows, std::size_t alignment) {
  if (max_rows > kMostRows)
    return fail(
        Code::kInvalidArgument,
        fmt::format("a node of the table may get {} rows; at most {} are possible", max_rows, kMostRows));
  const std::uint64_t slot_bytes = (alignment + row_bytes + alignment - 1) / alignment * alignment;
  const std::uint64_t max_buckets = max_rows / kMeanEntries + 2;
  auto memory = SharedMemory::create(kHeaderBytes + 2 * max_buckets * sizeof(Bucket) + max_rows * slot_bytes);
  if (!memory) return fail(std::move(memory).error());
  auto* header = new (memory->data()) Header{};
  header->row_bytes = row_bytes;
  header->row_offset = alignment;  // behind the key
  header->slot_bytes = slot_bytes;
  header->max_rows = max_rows;
  header->max_buckets = max_buckets;
  header->free_slot = kNoSlot;
  header->state.store(state_of(1), std::memory_order_release);
  return over(std::move(*memory));
}

Result<RowStore> RowStore::attach(const SharedMemoryName& name) {
  auto memory = SharedMemory::attach(name);
  if (!memory) return fail(std::move(memory).error());
  return over(std::move(*memory));
}

Result<RowStore> RowStore::over(SharedMemory memory) {
  RowStore store;
  store.memory_ = std::move(memory);
  std::byte* const data = store.memory_.data();
  store.header_ = reinterpret_cast<Header*>(data);
  store.buckets_ = reinterpret_cast<Bucket*>(data + kHeaderBytes);
  store.overflow_ = store.buckets_ + store.header_->max_buckets;
  store.slots_ = reinterpret_cast<std::byte*>(store.overflow_ + store.header_->max_buckets);
  store.slot_bytes_ = store.header_->slot_bytes;
  store.fetched_bytes_ = std::min<std::size_t>(store.slot_bytes_, 320);
  store.row_offset_ = store.header_->row_offset;
  return store;
}

bool RowStore::latch_slowly(Bucket& bucket) const {
  constexpr int kSpins = 200, kYieldsPerLook = 1000;
  for (int round = 1;; ++round) {
    if (latch(bucket)) return true;
    if (round < kSpins) {
      Waiter::relax();
      continue;
    }
    sched_yield();
    if (round % kYieldsPerLook == 0 && given_up_()) return false;
  }
}

Found RowStore::copy(Key key, std::byte* out, Version& version) const {
  const std::uint64_t hash = mixed(key);
  Bucket* const bucket = latch_bucket(hash);
  if (bucket == nullptr) return Found::kLatchLost;
  const std::uint64_t before = bucket->version.load(std::memory_order_relaxed) - 1;
  const std::byte* const row = find(bucket, hash, key);
  if (row != nullptr) std::memcpy(out, row, header_->row_bytes);
  version = {bucket, before};
  // Nothing has changed, for those who copy without the latch neither.
  bucket->version.store(before, std::memory_order_release);
  return row != nullptr ? Found::kHere : Found::kAbsent;
}

/// Asks the kernel for the pages from `begin` to `end` and some beyond, before `limit`. A page that comes at its first use takes a
/// trap of its own, which costs more than the page. `ready`: up to where this has been done.
void RowStore::prepare(const std::byte* begin, const std::byte* end, const std::byte* limit,
                       const std::byte*& ready) {
  if (end <= ready) return;
  constexpr std::ptrdiff_t kLeast = 64 << 10, kMost = 2 << 20, kPartOfUsed = 8;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::ptrdiff_t more = std::clamp((end - begin) / kPartOfUsed, kLeast, kMost);
  const std::byte* const from = std::max(begin, ready);
  ready = limit - end <= more ? limit : end + more;
#ifdef MADV_POPULATE_WRITE
  const std::size_t before = reinterpret_cast<std::uintptr_t>(from) % page;
  // Where the kernel cannot, the pages come as they are used.
  (void)::madvise(const_cast<std::byte*>(from - before), static_cast<std::size_t>(ready - from) + before,
                  MADV_POPULATE_WRITE);
#endif
}

Status RowStore::insert(Key key, const std::byte* row) {
  Header& header = *header_;
  std::uint64_t number = header.free_slot;
  if (number == kNoSlot && header.num_slots == header.max_rows)
    return Status::error(
        Code::kOutOfMemory,
        fmt::format("it has {} rows, as many as it may have; raise rows_per_node", header.num_rows));
  if (number == kNoSlot) {
    number = header.num_slots;
    prepare(slots_, slot(number + 1), slot(header.max_rows), ready_slots_);
  }
  const std::uint64_t hash = mixed(key);
  Bucket* const bucket = latch_bucket(hash);
  if (bucket == nullptr) return latch_lost();
  // Whole before others find it, also if this process dies here.
  const std::uint64_t next_free = key_of(slot(number));
  key_of(slot(number)) = key;
  std::memcpy(slot(number) + row_offset_, row, header.row_bytes);
  Status status = add_entry(bucket, tag_of(hash), static_cast<std::uint32_t>(number));
  if (status.ok()) {
    if (number == header.free_slot) {
      header.free_slot = next_free;
    } else {
      ++header.num_slots;
    }
    ++header.num_rows;
  } else {
    key_of(slot(number)) = next_free;
  }
  unlatch(*bucket);
  if (status.ok() && header.num_rows > kMeanEntries * num_buckets() && num_buckets() < header.max_buckets)
    return split();
  return status;
}

Found RowStore::take(Key key, std::byte* row) {
  const std::uint64_t hash = mixed(key);
  Bucket* const locked = latch_bucket(hash);
  if (locked == nullptr) return Found::kLatchLost;
  Entry found;
  for (Bucket* bucket = locked; found.bucket == nullptr; bucket = overflow_ + bucket->next - 1) {
    for (std::size_t i = 0; i < bucket->count && found.bucket == nullptr; ++i)
      if (bucket->tags[i] == tag_of(hash) && key_of(slot(bucket->slots[i])) == key) found = {bucket, i};
    if (bucket->next == 0) break;
  }
  if (found.bucket != nullptr) {
    const std::uint32_t number = found.bucket->slots[found.at];
    std::memcpy(row, slot(number) + row_offset_, header_->row_bytes);
    remove_entry(locked, found);
    key_of(slot(number)) = header_->free_slot;
    header_->free_slot = number;
    --header_->num_rows;
  }
  unlatch(*locked);
  return found.bucket != nullptr ? Found::kHere : Found::kAbsent;
}

/// Adds to a latched bucket, or to one behind it.
Status RowStore::add_entry(Bucket* bucket, std::uint16_t tag, std::uint32_t number) {
  while (bucket->count == kEntries && bucket->next != 0) bucket = overflow_ + bucket->next - 1;
  if (bucket->count == kEntries) {
    std::uint64_t fresh = header_->free_overflow;
    if (fresh != 0) {
      header_->free_overflow = overflow_[fresh - 1].next;
    } else if (header_->num_overflow < header_->max_buckets) {
      fresh = ++header_->num_overflow;
    } else {
      return Status::error(Code::kOutOfMemory, "the index of the table's rows is full");
    }
    overflow_[fresh - 1].next = 0;
    overflow_[fresh - 1].count = 0;
    bucket->next = static_cast<std::uint32_t>(fresh);
    bucket = overflow_ + fresh - 1;
  }
  bucket->slots[bucket->count] = number;
  bucket->tags[bucket->count] = tag;
  ++bucket->count;
  return Status::success();
}

/// The last entry of the chain takes the place of the removed one, so that only the last bucket has room.
void RowStore::remove_entry(Bucket* bucket, Entry entry) {
  Bucket* before = nullptr;
  while (bucket->next != 0) {
    before = bucket;
    bucket = overflow_ + bucket->next - 1;
  }
  --bucket->count;
  entry.bucket->slots[entry.at] = bucket->slots[bucket->count];
  entry.bucket->tags[entry.at] = bucket->tags[bucket->count];
  if (bucket->count > 0 || before == nullptr) return;
  bucket->next = static_cast<std::uint32_t>(header_->free_overflow);
  header_->free_overflow = before->next;
  before->next = 0;
}

/// Splits the next bucket in two. Readers that waited for its latch look their bucket up again.
Status RowStore::split() {
  Header& header = *header_;
  const std::uint64_t num = num_buckets();
  Bucket* const old = buckets_ + (num - std::bit_floor(num));
  if (!latch(*old) && !latch_slowly(*old)) return latch_lost();
  std::vector<std::pair<std::uint16_t, std::uint32_t>> entries;
  for (Bucket* bucket = old;; bucket = overflow_ + bucket->next - 1) {
    for (std::size_t i = 0; i < bucket->count; ++i) entries.emplace_back(bucket->tags[i], bucket->slots[i]);
    if (bucket->next == 0) break;
  }
  while (old->next != 0) {
    Bucket* const first = overflow_ + old->next - 1;
    const std::uint32_t number = old->next;
    old->next = first->next;
    first->next = static_cast<std::uint32_t>(header.free_overflow);
    header.free_overflow = number;
  }
  old->count = 0;
  Bucket* const fresh = buckets_ + num;
  prepare(reinterpret_cast<std::byte*>(buckets_), reinterpret_cast<std::byte*>(fresh + 1),
          reinterpret_cast<std::byte*>(overflow_), ready_buckets_);
  const std::uint64_t bit = std::bit_floor(num);
  Status status;
  for (const auto& [tag, number] : entries) {
    const bool moves = (mixed(key_of(slot(number))) & bit) != 0;
    if (Status added = add_entry(moves ? fresh : old, tag, number); !added.ok()) status = std::move(added);
  }
  header.state.store(state_of(num + 1), std::memory_order_release);
  unlatch(*old);
  return status;
}

std::uint64_t RowStore::used_bytes() const {
  return (num_buckets() + header_->num_overflow) * sizeof(Bucket) + header_->num_slots * header_->slot_bytes;
}

}  // namespace hips::ps
