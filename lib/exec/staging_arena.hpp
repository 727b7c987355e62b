#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "lib/base/os/shared_memory.hpp"
#include "lib/base/result.hpp"
#include "transports/transport.hpp"

namespace hips::exec {

/// Registered memory of the process from which teams take their staging.
///
/// A few large shared segments, registered once with each transport and mapped once by each peer, so that a
/// thousand communicators cost no mappings. Pages are touched when first used.
class StagingArena {
 public:
  struct Chunk {
    SharedMemory memory;
    std::map<transport::Transport*, transport::Region> regions;
    std::map<std::size_t, std::size_t> free;  ///< offset -> bytes
  };
  struct Piece {
    Chunk* chunk = nullptr;
    std::size_t offset = 0;
    std::size_t bytes = 0;
    [[nodiscard]] std::byte* data() const {
      return chunk == nullptr ? nullptr : chunk->memory.data() + offset;
    }
  };

  ~StagingArena();

  /// A piece of at least `bytes`, page aligned. kOutOfMemory, or the transport's refusal to register.
  Result<Piece> allocate(std::size_t bytes, std::span<transport::Transport* const> transports);
  /// The region of the piece's chunk for `transport`; registers on first use.
  Result<transport::Region> region(const Piece& piece, transport::Transport* transport);
  void release(const Piece& piece);

 private:
  std::vector<std::unique_ptr<Chunk>> chunks_;
};

}  // namespace hips::exec
