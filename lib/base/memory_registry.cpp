#include "lib/base/memory_registry.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace hips {
namespace {

constexpr std::size_t kPage = 4096;

std::uintptr_t number(const std::byte* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

std::string text(const std::byte* address, std::size_t bytes) {
  return fmt::format("[{}, {})", static_cast<const void*>(address),
                     reinterpret_cast<const void*>(number(address) + bytes));
}

}  // namespace

MemoryRegistry& MemoryRegistry::process() {
  static MemoryRegistry* const instance = new MemoryRegistry;
  return *instance;
}

Result<std::uint64_t> MemoryRegistry::add(std::byte* address, std::size_t bytes) {
  return insert(address, bytes, false);
}

Result<std::uint64_t> MemoryRegistry::insert(std::byte* address, std::size_t bytes, bool allocated,
                                             SharedMemory segment) {
  if (address == nullptr) return fail(Code::kInvalidArgument, "hips_mem_register: the address is null");
  if (bytes == 0) return fail(Code::kInvalidArgument, "hips_mem_register: 0 bytes; give the buffer's size");
  const std::uintptr_t begin = number(address);
  if (bytes > UINTPTR_MAX - begin)
    return fail(Code::kInvalidArgument,
                fmt::format("hips_mem_register: {} bytes at {} exceed the address space", bytes,
                            static_cast<const void*>(address)));
  auto range = std::make_unique<UserRange>();
  range->address = address;
  range->bytes = bytes;
  range->allocated = allocated;
  range->segment = std::move(segment);
  const std::lock_guard lock(mutex_);
  // Ranges do not overlap, so only the last range that begins before our end can overlap with ours.
  if (const auto after = ranges_.lower_bound(begin + bytes); after != ranges_.begin()) {
    const UserRange& before = *std::prev(after)->second;
    if (number(before.address) + before.bytes > begin)
      return fail(Code::kInvalidArgument,
                  fmt::format("hips_mem_register: {} overlaps {}, which is registered; deregister that first",
                              text(address, bytes), text(before.address, before.bytes)));
  }
  range->id = next_id_++;
  const std::uint64_t id = range->id;
  ranges_.emplace(begin, std::move(range));
  num_ranges_.store(ranges_.size(), std::memory_order_release);
  return id;
}

Status MemoryRegistry::take(Ranges::iterator at, const char* call, std::unique_ptr<UserRange>& taken) {
  const UserRange& range = *at->second;
  if (range.uses.load(std::memory_order_acquire) > 0)
    return Status::error(Code::kInvalidArgument,
                         fmt::format("{}: an outstanding operation uses {}; wait for it first", call,
                                     text(range.address, range.bytes)));
  taken = std::move(at->second);
  ranges_.erase(at);
  num_ranges_.store(ranges_.size(), std::memory_order_release);
  return Status::success();
}

Status MemoryRegistry::remove(std::uint64_t id) {
  std::unique_ptr<UserRange> taken;
  {
    const std::lock_guard lock(mutex_);
    const auto at = std::find_if(ranges_.begin(), ranges_.end(),
                                 [&](const auto& range) { return range.second->id == id; });
    if (at == ranges_.end())
      return Status::error(Code::kInvalidArgument,
                           "hips_mem_deregister: unknown registration; it has been deregistered already, or "
                           "was never made");
    if (at->second->allocated)
      return Status::error(Code::kInvalidArgument,
                           "hips_mem_deregister: this memory is from hips_mem_alloc; give it to "
                           "hips_mem_free");
    if (Status status = take(at, "hips_mem_deregister", taken); !status.ok()) return status;
  }
  notify_listeners(id);
  return Status::success();
}

SharedMemory MemoryRegistry::make_segment(std::size_t bytes) {
  if (bytes < kLeastShared || num_shared_.load(std::memory_order_relaxed) >= kMostShared) return {};
  auto memory = SharedMemory::create(whole_pages(bytes));
  if (!memory) return {};
  // Request huge pages, as malloc() does where THP is "madvise": the owner, and each peer that maps the
  // memory, takes fewer page faults.
  (void)::madvise(memory->data(), memory->size(), MADV_HUGEPAGE);
  return std::move(*memory);
}

Result<std::byte*> MemoryRegistry::allocate(std::size_t bytes) {
  if (bytes == 0) return fail(Code::kInvalidArgument, "hips_mem_alloc: 0 bytes");
  const auto refused = [&] {
    return fail(Code::kOutOfMemory, fmt::format("hips_mem_alloc: cannot allocate {} bytes", bytes));
  };
  if (bytes > SIZE_MAX - kPage) return refused();
  if (SharedMemory segment = make_segment(bytes); segment.size() > 0) {
    std::byte* const address = segment.data();
    if (auto id = insert(address, bytes, true, std::move(segment)); !id) return fail(std::move(id).error());
    num_shared_.fetch_add(1, std::memory_order_relaxed);
    return address;
  }
  void* const memory =
      ::mmap(nullptr, whole_pages(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return refused();
  auto* const address = static_cast<std::byte*>(memory);
  // A registration of unmapped memory may already cover these addresses.
  if (auto id = insert(address, bytes, true); !id) {
    (void)::munmap(memory, whole_pages(bytes));
    return fail(std::move(id).error());
  }
  return address;
}

Status MemoryRegistry::free(std::byte* address) {
  std::unique_ptr<UserRange> taken;
  {
    const std::lock_guard lock(mutex_);
    const auto at = ranges_.find(number(address));
    if (at == ranges_.end() || !at->second->allocated)
      return Status::error(
          Code::kInvalidArgument,
          fmt::format("hips_mem_free: {} is not from hips_mem_alloc, or has been freed before",
                      static_cast<const void*>(address)));
    if (Status status = take(at, "hips_mem_free", taken); !status.ok()) return status;
    num_freed_unused_.store(taken->used ? 0 : num_freed_unused() + 1, std::memory_order_relaxed);
  }
  // A device that has not deregistered the range yet holds its pages, not its addresses.
  if (taken->segment.size() > 0) {
    // Peers may keep their mappings; these no longer hold memory.
    taken->segment.give_back_pages();
    num_shared_.fetch_sub(1, std::memory_order_relaxed);
  } else {
    (void)::munmap(taken->address, whole_pages(taken->bytes));
  }
  notify_listeners(taken->id);
  return Status::success();
}

bool MemoryRegistry::has_allocated(const std::byte* address) {
  if (num_ranges_.load(std::memory_order_acquire) == 0) return false;
  const std::lock_guard lock(mutex_);
  const auto at = ranges_.find(number(address));
  return at != ranges_.end() && at->second->allocated;
}

UserRange* MemoryRegistry::hold(const std::byte* address, std::size_t bytes) {
  if (num_ranges_.load(std::memory_order_acquire) == 0 || bytes == 0) return nullptr;
  const std::uintptr_t begin = number(address);
  const std::lock_guard lock(mutex_);
  const auto after = ranges_.upper_bound(begin);
  if (after == ranges_.begin()) return nullptr;
  UserRange& range = *std::prev(after)->second;
  const std::size_t offset = begin - number(range.address);
  if (offset > range.bytes || bytes > range.bytes - offset) return nullptr;
  range.uses.fetch_add(1, std::memory_order_relaxed);
  range.used = true;
  return &range;
}

void MemoryRegistry::drop(UserRange* range) {
  if (range != nullptr) range->uses.fetch_sub(1, std::memory_order_release);
}

void MemoryRegistry::add_listener(RangeListener* listener) {
  const std::lock_guard lock(listeners_mutex_);
  listeners_.push_back(listener);
}

void MemoryRegistry::remove_listener(RangeListener* listener) {
  const std::lock_guard lock(listeners_mutex_);
  std::erase(listeners_, listener);
}

void MemoryRegistry::notify_listeners(std::uint64_t range) {
  const std::lock_guard lock(listeners_mutex_);
  for (RangeListener* listener : listeners_) listener->range_removed(range);
}

}  // namespace hips
