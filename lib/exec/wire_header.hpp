#pragma once

#include <cstdint>
#include <type_traits>

namespace hips::exec {

/// Bumped whenever the bytes between ranks change.
inline constexpr std::uint32_t kWireVersion = 8;
inline constexpr std::uint32_t kWireMagic = 0x48695000U | kWireVersion;  // "HiP" and the version

/// WireHeader::flags: the payload lies in the memory that the receiver has granted, not behind this header.
inline constexpr std::uint8_t kDirect = 1;

/// In WireHeader::count. No vector has as many elements.
inline constexpr int kElementShift = 48;

/// Stands before the payload in a staging slot: the name of the data and the signature of the call it belongs
/// to. The notification's token only names the slot.
struct WireHeader {
  std::uint32_t magic = kWireMagic;
  std::uint32_t communicator = 0;  ///< low half of its id
  std::uint64_t sequence = 0;      ///< of the operation on the communicator
  std::uint64_t count = 0;  ///< elements of the whole call; above, the size of such as are bytes_type()
  std::uint32_t bytes = 0;  ///< of this payload
  std::uint32_t segment = 0;
  std::uint32_t round = 0;
  std::uint16_t lane = 0;
  std::uint16_t stage = 0;
  std::int32_t sender = -1;
  std::uint8_t type = 0;  ///< the low byte, as of `op`: all that is the same on all ranks
  std::uint8_t op = 0;
  std::uint8_t flags = 0;
  std::uint8_t collective = 0;
  std::int64_t posted_ns = 0;  ///< sender's clock; 0 without a trace
  std::uint32_t credits = 0;   ///< for the receiver's channel to the sender, in the same lane
  std::uint32_t detail = 0;    ///< of the call: OperationArgs::detail
};
static_assert(sizeof(WireHeader) == 64, "one cache line before every payload");
static_assert(std::is_trivially_copyable_v<WireHeader>);

}  // namespace hips::exec
