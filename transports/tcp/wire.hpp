#pragma once

#include <netinet/in.h>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>

namespace hips::tcp {

/// Also detects a node of the other byte order, on which it reads as another number.
inline constexpr std::uint64_t kMagic = 0x3130706374706968;  // "hiptcp01"

/// A secret of an endpoint, drawn anew at each open(). A process that knows it has been given the address.
struct EndpointToken {
  std::uint64_t high = 0, low = 0;
  static EndpointToken random();
  friend auto operator<=>(const EndpointToken&, const EndpointToken&) = default;
};

/// What an Address carries: where to connect, the token to send there, and the process's name for messages.
struct TcpAddress {
  std::uint64_t magic = kMagic;
  EndpointToken token;
  std::int32_t pid = 0;
  std::uint32_t length = 0;                               ///< of `address`
  std::array<std::byte, sizeof(sockaddr_in6)> address{};  ///< a sockaddr_in or sockaddr_in6
  std::array<char, 68> host{};                            ///< null-terminated
};
static_assert(sizeof(TcpAddress) == 128, "it has no padding");

/// The first bytes of each direction of a connection.
struct TcpHello {
  std::uint64_t magic = kMagic;
  EndpointToken to;  ///< of the endpoint at the other end
  std::uint64_t reserved = 0;
};

/// Precedes the bytes of a put, and is the whole message of the other kinds.
struct FrameHeader {
  enum class Kind : std::uint32_t {
    kNone = 0,       ///< never sent
    kPut = 1,        ///< `bytes` follow
    kPutNotify = 2,  ///< `bytes` follow, then the notification `token` is raised
    kGet = 3,        ///< requests a kGetReply
    kGetReply = 4,   ///< `bytes` follow: the answer to the oldest unanswered kGet
    kClose = 5,      ///< orderly shutdown: no frame follows
  };
  Kind kind = Kind::kNone;
  std::uint32_t token = 0;
  std::int32_t memory = -1;  ///< number of the region
  std::uint32_t stamp = 0;   ///< tells regions that had the same number apart
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(FrameHeader) == 32, "it has no padding");
static_assert(sizeof(TcpHello) == sizeof(FrameHeader), "both are read by Inbox::receive()");

/// Outstanding gets to one peer. The peer's queue always has room for this many answers.
inline constexpr std::uint32_t kMaxGets = 16;

}  // namespace hips::tcp
