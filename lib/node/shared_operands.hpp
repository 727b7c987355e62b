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

/// The location of a buffer of a call, with which peers map it. Plain bytes, part of the call line.
struct BufferLocation {
  SharedMemoryName segment;  ///< 0 bytes: other processes cannot map the buffer
  std::uint64_t offset = 0;

  [[nodiscard]] bool shared() const { return segment.bytes > 0; }
};

/// The buffers of a rank in a call by slices. They hold for one rank and one call only.
struct BufferLocations {
  BufferLocation in;   ///< its operands
  BufferLocation out;  ///< its part of the result, until the others have copied it
};
static_assert(sizeof(BufferLocations) <= CallLine::kInlineBytes, "replaces the operands in the call line");

/// This rank's buffers in memory of hips_mem_alloc(). They are held for a call: until then the memory is not
/// freed.
class HeldOperands {
 public:
  HeldOperands() = default;
  HeldOperands(const HeldOperands&) = delete;
  HeldOperands& operator=(const HeldOperands&) = delete;
  ~HeldOperands() { drop(); }

  /// Holds the buffer if other processes can map all of it. Returns its location; of two buffers at most.
  BufferLocation hold(const std::byte* address, std::size_t bytes);
  void drop();
  [[nodiscard]] bool any() const { return num_ > 0; }

 private:
  MemoryRegistry& registry_ = MemoryRegistry::process();
  std::array<UserRange*, 2> ranges_{};
  std::size_t num_ = 0;
};

/// The segments of one peer that this rank has mapped for reading.
///
/// Mappings are kept, because programs reuse buffers, and mapping takes several system calls and page faults.
/// Tokens are never reused: new memory at the same address, or with the same descriptor, has another token.
/// If the owner has freed a segment, its mapping holds no memory any more.
class PeerSegments {
 public:
  static constexpr std::size_t kMost = 64;

  /// The address of the location in this process; valid for the call at least.
  ///
  /// Errors   those of SharedMemory::attach_readable(); kMismatch: its `bytes` lie beyond its segment.
  Result<const std::byte*> find(const BufferLocation& location, std::size_t bytes, std::uint64_t call);
  [[nodiscard]] std::size_t num_mapped() const { return segments_.size(); }

 private:
  struct Segment {
    SharedMemory memory;
    std::uint64_t last_call = 0;
  };
  std::vector<Segment> segments_;
};

}  // namespace hips::node
