#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "lib/base/os/shared_memory.hpp"
#include "lib/base/result.hpp"
#include "transports/transport.hpp"

namespace hips::exec {

/// Registered memory of the process, from which teams allocate their staging.
///
/// It consists of a few large shared segments. Each transport registers a segment once and each peer maps it
/// once, so a thousand communicators cost no additional mappings. Pages are touched at first use.
class StagingArena {
 public:
  struct Chunk {
    SharedMemory memory;
    bool locked = false;  ///< small enough to be registered with a NIC, which pins all its pages
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

  /// Allocates at least `bytes`, page aligned.
  ///
  /// Errors   kOutOfMemory; or the transport's error when it cannot register the memory.
  Result<Piece> allocate(std::size_t bytes, std::span<transport::Transport* const> transports);
  /// The registration of the piece's chunk with `transport`; registers at the first call.
  Result<transport::Region> region(const Piece& piece, transport::Transport* transport);
  void release(const Piece& piece);

 private:
  std::vector<std::unique_ptr<Chunk>> chunks_;
};

}  // namespace hips::exec
