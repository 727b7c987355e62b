#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/base/memory_registry.hpp"
#include "lib/base/os/shared_memory.hpp"
#include "lib/base/result.hpp"
#include "lib/node/shared_block.hpp"

namespace hips::node {

/// Where a buffer of a call lies, for peers to map it; plain bytes, travel in the call line.
struct Place {
  SharedMemoryName segment;  ///< of 0 bytes: nobody else can map it
  std::uint64_t offset = 0;

  [[nodiscard]] bool shared() const { return segment.bytes > 0; }
};

/// What a rank says of the buffers of a call that goes slice by slice. Each rank speaks for itself and for
/// one call: its next buffers may be others.
struct Places {
  Place in;   ///< what it brings
  Place out;  ///< where it leaves its part of the result before others copy that
};
static_assert(sizeof(Places) <= CallLine::kInlineBytes,
              "in the place of operands, which such calls have not");

/// This rank's buffers in memory of hips_mem_alloc(), held for a call: till then it is not freed.
class HeldOperands {
 public:
  HeldOperands() = default;
  HeldOperands(const HeldOperands&) = delete;
  HeldOperands& operator=(const HeldOperands&) = delete;
  ~HeldOperands() { drop(); }

  /// Holds the buffer where others can map all of it, and says where it lies. Two at most.
  Place hold(const std::byte* address, std::size_t bytes);
  void drop();
  [[nodiscard]] bool any() const { return num_ > 0; }

 private:
  MemoryRegistry& registry_ = MemoryRegistry::process();
  std::array<UserRange*, 2> ranges_{};
  std::size_t num_ = 0;
};

/// The segments of one peer that this rank has mapped, for reading.
///
/// They are kept, since buffers are used again and again: mapping takes several system calls and a page fault
/// for each few pages. A token is given once, so that one that is freed and made anew at the same address, or
/// with the same descriptor, is another one. Of what its owner has freed a mapping holds no memory any more.
class PeerSegments {
 public:
  static constexpr std::size_t kMost = 64;

  /// The first byte of the place, in this process; good for the call at least.
  ///
  /// Errors   those of SharedMemory::attach_readable(); kMismatch: beyond its segment.
  Result<const std::byte*> find(const Place& place, std::uint64_t call);
  [[nodiscard]] std::size_t num_mapped() const { return segments_.size(); }

 private:
  struct Segment {
    SharedMemory memory;
    std::uint64_t last_call = 0;
  };
  std::vector<Segment> segments_;
};

}  // namespace hips::node
