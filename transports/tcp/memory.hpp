#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/base/result.hpp"
#include "transports/tcp/wire.hpp"
#include "transports/transport.hpp"

namespace hips::tcp {

/// The memory that peers may access. The key of a region is its number and a stamp. The stamp differs from those
/// of earlier regions with that number, so a late frame never writes to other memory.
///
/// Threads  one at a time.
class RegionTable {
 public:
  RegionTable();

  /// Errors   kInvalidArgument: no memory. kUnsupported: phantom memory.
  Result<transport::Region> add(const transport::MemoryDesc& memory);
  /// Does nothing if there is no such region.
  void remove(transport::MemoryId memory);

  /// The bytes that a frame writes or reads.
  ///
  /// Errors   kInternal: no such region, or the bytes lie outside it.
  [[nodiscard]] Result<std::span<std::byte>> find(const FrameHeader& frame) const;
  /// True if the frame names a region that was registered once and is deregistered.
  [[nodiscard]] bool is_gone(const FrameHeader& frame) const;

 private:
  struct Entry {
    std::byte* address = nullptr;
    std::size_t bytes = 0;
    std::uint32_t stamp = 0;  ///< 0: free
  };
  std::vector<Entry> entries_;  ///< by MemoryId
  std::vector<transport::MemoryId> free_;
  std::uint32_t first_stamp_;
  std::uint64_t num_given_ = 0;  ///< stamps used so far
};

}  // namespace hips::tcp
