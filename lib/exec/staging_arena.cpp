#include "lib/exec/staging_arena.hpp"

#include <algorithm>

namespace hips::exec {
namespace {

constexpr std::size_t kSmallestPiece = 4096;
// This reserves address space, not memory: pages are allocated when they are touched.
constexpr std::size_t kChunkBytes = 64U << 20U;
// A NIC registration pins all pages of a chunk, so these chunks are small.
constexpr std::size_t kLockedChunkBytes = 1U << 20U;

}  // namespace

StagingArena::~StagingArena() {
  for (auto& chunk : chunks_) {
    for (auto& [transport, region] : chunk->regions) transport->deregister(region.local);
  }
}

Result<StagingArena::Piece> StagingArena::allocate(std::size_t bytes,
                                                   std::span<transport::Transport* const> transports) {
  bytes =
      std::max<std::size_t>(kSmallestPiece, (bytes + kSmallestPiece - 1) / kSmallestPiece * kSmallestPiece);
  const bool locked = std::any_of(transports.begin(), transports.end(), [](const auto* transport) {
    return transport->query().needs_local_registration;
  });
  Piece piece;
  for (auto& chunk : chunks_) {
    if (locked && !chunk->locked) continue;
    const auto fits = std::find_if(chunk->free.begin(), chunk->free.end(),
                                   [&](const auto& range) { return range.second >= bytes; });
    if (fits == chunk->free.end()) continue;
    piece = {chunk.get(), fits->first, bytes};
    const std::size_t rest = fits->second - bytes;
    chunk->free.erase(fits);
    if (rest > 0) chunk->free.emplace(piece.offset + bytes, rest);
    break;
  }
  if (piece.chunk == nullptr) {
    auto memory = SharedMemory::create(std::max(bytes, locked ? kLockedChunkBytes : kChunkBytes));
    if (!memory) return fail(std::move(memory).error());
    auto chunk = std::make_unique<Chunk>();
    chunk->memory = *std::move(memory);
    chunk->locked = locked;
    if (chunk->memory.size() > bytes) chunk->free.emplace(bytes, chunk->memory.size() - bytes);
    piece = {chunk.get(), 0, bytes};
    chunks_.push_back(std::move(chunk));
  }
  for (transport::Transport* transport : transports) {
    if (auto registered = region(piece, transport); !registered) {
      release(piece);
      return fail(std::move(registered).error());
    }
  }
  return piece;
}

Result<transport::Region> StagingArena::region(const Piece& piece, transport::Transport* transport) {
  auto& regions = piece.chunk->regions;
  if (const auto it = regions.find(transport); it != regions.end()) return it->second;
  SharedMemory& memory = piece.chunk->memory;
  auto registered = transport->register_memory({.address = memory.data(),
                                                .bytes = memory.size(),
                                                .kind = transport::MemoryKind::kShared,
                                                .fd = memory.fd()});
  if (registered) regions.emplace(transport, *registered);
  return registered;
}

void StagingArena::release(const Piece& piece) {
  if (piece.chunk == nullptr) return;
  auto& free = piece.chunk->free;
  auto next = free.emplace(piece.offset, piece.bytes).first;
  if (auto after = std::next(next); after != free.end() && next->first + next->second == after->first) {
    next->second += after->second;
    free.erase(after);
  }
  if (next != free.begin()) {
    if (auto before = std::prev(next); before->first + before->second == next->first) {
      before->second += next->second;
      free.erase(next);
    }
  }
}

}  // namespace hips::exec
