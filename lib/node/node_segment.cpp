#include "lib/node/node_segment.hpp"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>

namespace hips::node {
namespace {

constexpr std::size_t kPage = 4096;
/// Of address space, not memory.
constexpr std::size_t kMostBytes = 1U << 30U, kLeastBytes = 16U << 20U;

constexpr std::size_t round_up(std::size_t value, std::size_t to) {
  return (value + to - 1) / to * to;
}

/// Where the pool begins in the segment.
constexpr std::size_t kPool = round_up(sizeof(SegmentHeader), kPage);

/// Ids are hashes already, but callers may count from one.
std::size_t chain_of(std::uint64_t id) {
  return static_cast<std::size_t>((id * 0x9e3779b97f4a7c15ULL) >> 32U) % SegmentHeader::kChains;
}

std::size_t limit_of(int resource) {
  rlimit limit{};
  return getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0 || limit.rlim_cur == RLIM_INFINITY
             ? SIZE_MAX
             : static_cast<std::size_t>(limit.rlim_cur);
}

std::size_t segment_bytes() {
  // Where a process may have only so much address space, its peers' segments have to fit, too.
  constexpr std::size_t kShare = 512;
  const std::size_t addresses = limit_of(RLIMIT_AS);
  const std::size_t bytes =
      addresses == SIZE_MAX ? kMostBytes : std::clamp(addresses / kShare, kLeastBytes, kMostBytes);
  // A larger file would end the process (SIGXFSZ).
  return std::min(bytes, limit_of(RLIMIT_FSIZE)) / kPage * kPage;
}

/// A core dump would allocate every page that it reads.
void leave_out_of_dumps(const SharedMemory& memory) {
  (void)madvise(memory.data(), memory.size(), MADV_DONTDUMP);
}

Status no_memory() {
  return Status::error(Code::kOutOfMemory, "out of memory", Scope::kCommunicator);
}

}  // namespace

// ---- The segment of a peer -----------------------------------------------------------------------------

SharedBlock* NodePeer::find(std::uint64_t id) const {
  // The owner changes the directory rarely and for a moment. If it died just then, what is found has to do.
  constexpr int kMostTries = 1000;
  for (int tries = 0; tries < kMostTries; ++tries) {
    const std::uint64_t before = header_->changes.load(std::memory_order_seq_cst);
    PoolRef ref = header_->chains[chain_of(id)].load(std::memory_order_seq_cst);
    while (ref != 0) {
      auto* const block = reinterpret_cast<SharedBlock*>(at(ref));
      if (block->id.load(std::memory_order_seq_cst) == id) return block;
      ref = block->next.load(std::memory_order_seq_cst);
      // A chain that changes may lead anywhere, and in circles.
      if (header_->changes.load(std::memory_order_seq_cst) != before) break;
    }
    if (before % 2 == 0 && header_->changes.load(std::memory_order_seq_cst) == before) return nullptr;
  }
  return nullptr;
}

void NodePeer::wake() {
  if (!has_pipe_.load(std::memory_order_acquire) || header_->asleep.load(std::memory_order_seq_cst) == 0)
    return;
  // One wake-up for each sleep: the rank that clears the flag sends it.
  if (header_->asleep.exchange(0, std::memory_order_seq_cst) != 0) WakePipe::ring(wake_pipe_);
}

// ---- The segment of this process -----------------------------------------------------------------------

Result<std::shared_ptr<NodeSegment>> NodeSegment::create() {
  const std::size_t bytes = segment_bytes();
  if (bytes <= kPool)
    return fail(Code::kOutOfMemory,
                fmt::format("shared memory: files may have {} bytes (ulimit -f); expected at least {}",
                            limit_of(RLIMIT_FSIZE), kPool + kPage));
  auto memory = SharedMemory::create(bytes);
  if (!memory) return fail(std::move(memory).error());
  leave_out_of_dumps(*memory);
  std::shared_ptr<NodeSegment> segment(new NodeSegment);
  segment->self_ = std::make_shared<NodePeer>();
  NodePeer& self = *segment->self_;
  self.memory_ = std::move(*memory);
  self.header_ = new (self.memory_.data()) SegmentHeader;
  segment->used_ = kPool;
  return segment;
}

NodeSegment::~NodeSegment() = default;

NodeName NodeSegment::name() const {
  const std::lock_guard lock(mutex_);
  return {.memory = self_->memory_.name(), .wake_pipe = wake_pipe_.name()};
}

Status NodeSegment::make_wake_pipe() {
  const std::lock_guard lock(mutex_);
  if (wake_pipe_.fd() >= 0) return Status::success();
  auto made = WakePipe::create();
  if (!made) return made.error();
  wake_pipe_ = *std::move(made);
  return Status::success();
}

Result<std::shared_ptr<NodePeer>> NodeSegment::peer(const NodeName& name) {
  const std::lock_guard lock(mutex_);
  if (name.memory.token == self_->memory_.name().token) return self_;
  std::weak_ptr<NodePeer>& known = peers_[name.memory.token];
  std::shared_ptr<NodePeer> peer = known.lock();
  if (!peer) {
    std::erase_if(peers_,
                  [&](const auto& one) { return one.first != name.memory.token && one.second.expired(); });
    auto memory = SharedMemory::attach(name.memory);
    if (!memory) return fail(std::move(memory).error());
    peer = std::make_shared<NodePeer>();
    peer->header_ = reinterpret_cast<SegmentHeader*>(memory->data());
    if (memory->size() <= kPool || peer->header_->magic != SegmentHeader::kMagic)
      return fail(
          Code::kMismatch,
          fmt::format(
              "process {} shares {} bytes of another layout, expected more than {}: do all ranks run the same library?",
              name.memory.file.pid, memory->size(), kPool),
          Scope::kCommunicator);
    leave_out_of_dumps(*memory);
    peer->memory_ = std::move(*memory);
    peers_[name.memory.token] = peer;
  }
  if (name.wake_pipe.fd >= 0 && !peer->has_pipe_.load(std::memory_order_relaxed)) {
    auto end = WakePipe::open_end(name.wake_pipe);
    if (!end) return fail(std::move(end).error());
    peer->wake_pipe_ = *std::move(end);
    peer->has_pipe_.store(true, std::memory_order_release);
  }
  return peer;
}

// ---- Blocks --------------------------------------------------------------------------------------------

Result<SharedBlock*> NodeSegment::open(std::uint64_t id, Rank size, std::size_t layout_bytes) {
  const std::lock_guard lock(mutex_);
  reclaim();
  PoolRef ref = first_free_;
  if (ref != 0) {
    first_free_ = block(ref).next_closed;
  } else {
    auto taken = take(sizeof(SharedBlock), kApart);
    if (!taken) return fail(std::move(taken).error());
    ref = *taken;
  }
  SharedBlock& opened = block(ref);
  opened.reset();
  opened.self = ref;
  opened.size = size;
  opened.layout_bytes = layout_bytes;
  opened.id.store(id, std::memory_order_seq_cst);
  link(opened);
  ++num_blocks_;
  return &opened;
}

// The owner of a block uses it again when each other rank has marked it. A rank that opens its block after another one has
// closed is not marked by that one. Therefore the closing rank notes beforehand that it may miss a block. Who takes that note
// away sees to the mark: the closing rank, if it finds the block, or else the other one when it closes. A rank that does not get
// its own note back touches the other's block no more, since that may be used again.
void NodeSegment::close(SharedBlock& mine, Rank rank,
                        std::span<const std::shared_ptr<NodePeer>> peers) noexcept {
  const std::uint64_t id = mine.id.load(std::memory_order_relaxed);
  for (std::size_t r = 0; r < peers.size(); ++r) {
    const auto other = static_cast<Rank>(r);
    if (other == rank) continue;
    mine.missed.add(other);
    SharedBlock* const theirs = peers[r]->find(id);
    if (theirs == nullptr || !mine.missed.take(other)) continue;
    if (theirs->missed.take(rank)) mine.closed_by.add(other);
    theirs->closed_by.add(rank);  // after this it may be used again
  }
  const std::lock_guard lock(mutex_);
  append_closed(mine);
  reclaim();
}

void NodeSegment::append_closed(SharedBlock& block) noexcept {
  block.next_closed = 0;
  (first_closed_ == 0 ? first_closed_ : this->block(last_closed_).next_closed) = block.self;
  last_closed_ = block.self;
}

/// Takes back the blocks that nobody reads any more; looks at a few each time, because others may keep many.
void NodeSegment::reclaim() noexcept {
  constexpr int kMostTries = 8;
  for (int tries = 0; first_closed_ != 0 && tries < kMostTries; ++tries) {
    SharedBlock& one = block(first_closed_);
    first_closed_ = one.next_closed;
    if (one.closed_by.count() + 1 < one.size) {
      append_closed(one);
      continue;
    }
    unlink(one);
    give_back(one.exchange);
    give_back(one.slices);
    one.next_closed = std::exchange(first_free_, one.self);
    --num_blocks_;
  }
}

void NodeSegment::link(SharedBlock& block) noexcept {
  std::atomic<PoolRef>& chain = self_->header_->chains[chain_of(block.id.load(std::memory_order_relaxed))];
  block.next.store(chain.load(std::memory_order_relaxed), std::memory_order_release);
  chain.store(block.self, std::memory_order_seq_cst);
}

void NodeSegment::unlink(SharedBlock& block) noexcept {
  SegmentHeader& header = *self_->header_;
  header.changes.fetch_add(1, std::memory_order_seq_cst);
  std::atomic<PoolRef>* at = &header.chains[chain_of(block.id.load(std::memory_order_relaxed))];
  while (at->load(std::memory_order_relaxed) != block.self)
    at = &this->block(at->load(std::memory_order_relaxed)).next;
  at->store(block.next.load(std::memory_order_relaxed), std::memory_order_seq_cst);
  block.id.store(0, std::memory_order_seq_cst);
  header.changes.fetch_add(1, std::memory_order_seq_cst);
}

std::size_t NodeSegment::num_blocks() const {
  const std::lock_guard lock(mutex_);
  return num_blocks_;
}

// ---- The pool ------------------------------------------------------------------------------------------

Result<Piece> NodeSegment::take_staging(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes = round_up(bytes, kPage);
  auto ref = take(bytes, kPage);
  if (!ref) return fail(std::move(ref).error());
  return Piece{*ref, bytes};
}

Result<PoolRef> NodeSegment::take(std::size_t bytes, std::size_t alignment) {
  try {
    auto list = std::ranges::find(free_, bytes, &FreeList::bytes);
    if (list == free_.end()) list = free_.insert(list, {.bytes = bytes});  // give_back() finds it
    if (list->first != 0) {
      const PoolRef ref = list->first;
      std::memcpy(&list->first, self_->at(ref), sizeof list->first);
      return ref;
    }
    const std::size_t begin = round_up(used_, alignment);
    if (begin + bytes > self_->memory_.size())
      return fail(
          Code::kOutOfMemory,
          fmt::format(
              "shared memory: the {} KiB of this process are in use; use fewer communicators at a time",
              self_->memory_.size() >> 10U),
          Scope::kCommunicator);
    used_ = begin + bytes;
    return begin;
  } catch (const std::bad_alloc&) {
    return fail(no_memory());
  }
}

void NodeSegment::give_back(const Piece& piece) noexcept {
  if (piece.at == 0) return;
  const auto list = std::ranges::find(free_, piece.bytes, &FreeList::bytes);
  std::memcpy(self_->at(piece.at), &list->first, sizeof list->first);
  list->first = piece.at;
}

SharedBlock& NodeSegment::block(PoolRef ref) const {
  return *reinterpret_cast<SharedBlock*>(self_->at(ref));
}

}  // namespace hips::node
