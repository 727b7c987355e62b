#include "lib/node/node_segment.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>

namespace hips::node {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kFirstChunk = 16U << 20U;
constexpr unsigned kOffsetBits = 48;

constexpr std::size_t round_up(std::size_t value, std::size_t to) {
  return (value + to - 1) / to * to;
}

/// Where the pool's first chunk begins in the segment.
constexpr std::size_t kPool = round_up(sizeof(SegmentHeader), kPage);

constexpr PoolRef ref_of(std::size_t chunk, std::size_t offset) {
  return (static_cast<PoolRef>(chunk) + 1) << kOffsetBits | offset;
}
constexpr std::size_t chunk_of(PoolRef ref) {
  return static_cast<std::size_t>(ref >> kOffsetBits) - 1;
}
constexpr std::size_t offset_of(PoolRef ref) {
  return static_cast<std::size_t>(ref & ((PoolRef{1} << kOffsetBits) - 1));
}

/// Ids are hashes already, but callers may count from one.
std::size_t chain_of(std::uint64_t id) {
  return static_cast<std::size_t>((id * 0x9e3779b97f4a7c15ULL) >> 32U) % SegmentHeader::kChains;
}

Status no_memory() {
  return Status::error(Code::kOutOfMemory, "out of memory", Scope::kCommunicator);
}

}  // namespace

// ---- The segment of a peer -----------------------------------------------------------------------------

Result<std::byte*> NodePeer::at(PoolRef piece) {
  const std::size_t chunk = chunk_of(piece);
  if (chunk >= SegmentHeader::kMostChunks)
    return fail(
        Code::kMismatch,
        fmt::format("shared memory: a piece in chunk {} of at most {}", chunk, SegmentHeader::kMostChunks),
        Scope::kCommunicator);
  std::byte* begin = chunks_[chunk].load(std::memory_order_acquire);
  if (begin == nullptr) {
    const std::lock_guard lock(mutex_);
    if (mapped_[chunk].size() == 0) {
      auto memory = SharedMemory::attach(header_->chunks[chunk]);
      if (!memory) return fail(std::move(memory).error());
      mapped_[chunk] = std::move(*memory);
    }
    begin = mapped_[chunk].data();
    chunks_[chunk].store(begin, std::memory_order_release);
  }
  return begin + offset_of(piece);
}

Result<SharedBlock*> NodePeer::find(std::uint64_t id) {
  // The owner changes the directory rarely and for a moment. If it died just then, what is found has to do.
  constexpr int kMostTries = 1000;
  for (int tries = 0; tries < kMostTries; ++tries) {
    const std::uint64_t before = header_->changes.load(std::memory_order_seq_cst);
    PoolRef ref = header_->chains[chain_of(id)].load(std::memory_order_seq_cst);
    SharedBlock* found = nullptr;
    // A chain that changes meanwhile may lead anywhere, and in circles.
    for (std::size_t steps = 0; ref != 0 && steps < (1U << 20U); ++steps) {
      auto address = at(ref);
      if (!address) return fail(std::move(address).error());
      auto* const block = reinterpret_cast<SharedBlock*>(*address);
      if (block->id.load(std::memory_order_seq_cst) == id) {
        found = block;
        break;
      }
      ref = block->next.load(std::memory_order_seq_cst);
      if (header_->changes.load(std::memory_order_relaxed) != before) break;
    }
    if (found != nullptr) return found;
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
  auto memory = SharedMemory::create(kPool + kFirstChunk);
  if (!memory) return fail(std::move(memory).error());
  std::shared_ptr<NodeSegment> segment(new NodeSegment);
  segment->self_ = std::make_shared<NodePeer>();
  NodePeer& self = *segment->self_;
  self.memory_ = std::move(*memory);
  self.header_ = new (self.memory_.data()) SegmentHeader;
  self.mapped_[0] = self.memory_;
  self.chunks_[0].store(self.memory_.data() + kPool, std::memory_order_release);
  segment->chunk_bytes_ = kFirstChunk;
  segment->chunks_.push_back(self.memory_);
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
    if (memory->size() != kPool + kFirstChunk || peer->header_->magic != SegmentHeader::kMagic)
      return fail(
          Code::kMismatch,
          fmt::format(
              "process {} shares {} bytes of another layout, expected {}: do all ranks run the same library?",
              name.memory.file.pid, memory->size(), kPool + kFirstChunk),
          Scope::kCommunicator);
    peer->memory_ = std::move(*memory);
    peer->mapped_[0] = peer->memory_;
    peer->chunks_[0].store(peer->memory_.data() + kPool, std::memory_order_release);
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
// closed is not marked by that one, which notes that it missed it; the rank finds the note when it closes.
void NodeSegment::close(SharedBlock& mine, Rank rank,
                        std::span<const std::shared_ptr<NodePeer>> peers) noexcept {
  const std::uint64_t id = mine.id.load(std::memory_order_relaxed);
  mine.closed.store(1, std::memory_order_seq_cst);
  for (std::size_t r = 0; r < peers.size(); ++r) {
    const auto other = static_cast<Rank>(r);
    if (other == rank) continue;
    const auto found = peers[r]->find(id);
    if (!found || *found == nullptr) {
      mine.missed.add(other);
      continue;
    }
    SharedBlock& theirs = **found;
    if (theirs.closed.load(std::memory_order_seq_cst) != 0 && theirs.missed.has(rank))
      mine.closed_by.add(other);
    theirs.closed_by.add(rank);  // after this it may be used again
  }
  const std::lock_guard lock(mutex_);
  mine.next_closed = std::exchange(first_closed_, mine.self);
  reclaim();
}

/// Takes back the blocks that nobody reads any more; looks at a few, because others may keep many.
void NodeSegment::reclaim() noexcept {
  constexpr int kMostTries = 8;
  PoolRef* at = &first_closed_;
  for (int tries = 0; *at != 0 && tries < kMostTries; ++tries) {
    SharedBlock& one = block(*at);
    if (one.closed_by.count() + 1 < one.size) {
      at = &one.next_closed;
      continue;
    }
    *at = one.next_closed;
    unlink(one);
    give_back(one.exchange);
    give_back(one.slices);
    one.next_closed = std::exchange(first_free_, one.self);
    --num_blocks_;
  }
}

void NodeSegment::link(SharedBlock& block) noexcept {
  std::atomic<PoolRef>& chain = self_->header_->chains[chain_of(block.id.load(std::memory_order_relaxed))];
  block.next.store(chain.load(std::memory_order_relaxed), std::memory_order_relaxed);
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
      std::memcpy(&list->first, address(ref), sizeof list->first);
      return ref;
    }
    used_ = round_up(used_, alignment);
    if (used_ + bytes > chunk_bytes_) {
      if (Status status = add_chunk(bytes); !status.ok()) return fail(std::move(status));
    }
    return ref_of(chunks_.size() - 1, std::exchange(used_, used_ + bytes));
  } catch (const std::bad_alloc&) {
    return fail(no_memory());
  }
}

void NodeSegment::give_back(const Piece& piece) noexcept {
  if (piece.at == 0) return;
  const auto list = std::ranges::find(free_, piece.bytes, &FreeList::bytes);
  std::memcpy(address(piece.at), &list->first, sizeof list->first);
  list->first = piece.at;
}

/// What is left of the newest chunk stays unused. It costs addresses, no memory.
Status NodeSegment::add_chunk(std::size_t bytes) {
  if (chunks_.size() == SegmentHeader::kMostChunks)
    return Status::error(
        Code::kOutOfMemory,
        fmt::format("shared memory: all {} chunks of this process are in use", chunks_.size()),
        Scope::kCommunicator);
  const std::size_t wanted = std::max(2 * chunk_bytes_, std::bit_ceil(bytes));
  auto memory = SharedMemory::create(wanted);
  if (!memory) return memory.error();
  chunks_.push_back(*memory);
  const std::size_t chunk = chunks_.size() - 1;
  self_->header_->chunks[chunk] = memory->name();
  {
    const std::lock_guard lock(self_->mutex_);
    self_->mapped_[chunk] = *memory;
  }
  self_->chunks_[chunk].store(memory->data(), std::memory_order_release);
  chunk_bytes_ = wanted;
  used_ = 0;
  return Status::success();
}

std::byte* NodeSegment::address(PoolRef ref) const {
  return self_->chunks_[chunk_of(ref)].load(std::memory_order_relaxed) + offset_of(ref);
}

SharedBlock& NodeSegment::block(PoolRef ref) const {
  return *reinterpret_cast<SharedBlock*>(address(ref));
}

}  // namespace hips::node
