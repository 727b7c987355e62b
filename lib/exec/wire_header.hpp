#pragma once

#include <cstdint>
#include <type_traits>

#include "lib/base/wire_version.hpp"

namespace hips::exec {

static_assert(kWireVersion <= 0xff);
inline constexpr std::uint32_t kWireMagic = 0x48695000U | kWireVersion;  // "HiP" and the version

/// WireHeader::flags: the payload was written into granted memory, not behind this header.
inline constexpr std::uint8_t kDirect = 1;

/// Position of the element size in WireHeader::count; no count needs these bits.
inline constexpr int kElementShift = 48;

/// Header in front of the payload in a staging slot. It identifies the data and holds the signature of its
/// call. The token of the notification identifies the slot only.
struct WireHeader {
  std::uint32_t magic = kWireMagic;
  std::uint32_t communicator = 0;  ///< low half of the communicator's id
  std::uint64_t sequence = 0;      ///< of the operation on the communicator
  /// Elements of the whole call; the upper bits hold the element size of a bytes_type().
  std::uint64_t count = 0;
  std::uint32_t bytes = 0;  ///< bytes of this payload
  std::uint32_t segment = 0;
  std::uint32_t round = 0;
  std::uint16_t lane = 0;
  std::uint16_t stage = 0;
  std::int32_t sender = -1;
  std::uint8_t type = 0;  ///< the low byte, as in `op`: the part that is equal on all ranks
  std::uint8_t op = 0;
  std::uint8_t flags = 0;
  std::uint8_t collective = 0;
  std::int64_t posted_ns = 0;  ///< time of the sender's clock; 0 if not traced
  std::uint32_t credits = 0;   ///< credits for the receiver's channel to the sender, in the same lane
  std::uint32_t detail = 0;    ///< OperationArgs::detail
};
static_assert(sizeof(WireHeader) == 64, "one cache line before every payload");
static_assert(std::is_trivially_copyable_v<WireHeader>);

}  // namespace hips::exec
