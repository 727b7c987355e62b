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

/// The memory that peers may reach. A region's key is its number here and a stamp that no earlier region of
/// that number had, so that a late frame never hits other memory.
///
/// Threads  one at a time.
class RegionTable {
 public:
  RegionTable();

  /// Errors   kInvalidArgument: no memory. kUnsupported: phantom memory.
  Result<transport::Region> add(const transport::MemoryDesc& memory);
  /// Without effect where there is none of that number.
  void remove(transport::MemoryId memory);

  /// The bytes that a frame wants to write or read.
  ///
  /// Errors   kInternal: no such region, or not inside it.
  [[nodiscard]] Result<std::span<std::byte>> find(const FrameHeader& frame) const;
  /// The frame names a region that there was once and is no more.
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
  std::uint64_t num_given_ = 0;  ///< stamps
};

}  // namespace hips::tcp
