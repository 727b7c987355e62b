#pragma once

#include <netinet/in.h>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>

namespace hips::tcp {

/// Also tells a host of the other byte order, where it reads as another number.
inline constexpr std::uint64_t kMagic = 0x3130706374706968;  // "hiptcp01"

/// A secret of an endpoint, new at each open(): who knows it was given the address.
struct Token {
  std::uint64_t high = 0, low = 0;
  static Token random();
  friend auto operator<=>(const Token&, const Token&) = default;
};

/// What an Address carries: where to dial, what to say there, and the process's name for people.
struct WireAddress {
  std::uint64_t magic = kMagic;
  Token token;
  std::int32_t pid = 0;
  std::uint32_t length = 0;                               ///< of `address`
  std::array<std::byte, sizeof(sockaddr_in6)> address{};  ///< a sockaddr_in or sockaddr_in6
  std::array<char, 68> host{};                            ///< ends with a 0
};
static_assert(sizeof(WireAddress) == 128, "it has no padding");

/// The first bytes of each direction of a connection.
struct Hello {
  std::uint64_t magic = kMagic;
  Token to;  ///< of the endpoint at the other end
  std::uint64_t reserved = 0;
};

/// What precedes the bytes of a put, and stands for everything else.
struct FrameHeader {
  enum class Kind : std::uint32_t {
    kNone = 0,       ///< is never sent
    kPut = 1,        ///< `bytes` follow
    kPutNotify = 2,  ///< `bytes` follow, then `token` arrives
    kGet = 3,        ///< asks for a kGetReply
    kGetReply = 4,   ///< `bytes` follow, which the oldest kGet without an answer asked for
    kGoodbye = 5,    ///< nothing follows any more
  };
  Kind kind = Kind::kNone;
  std::uint32_t token = 0;
  std::int32_t memory = -1;  ///< the region, and
  std::uint32_t stamp = 0;   ///< which of those that had this number
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(FrameHeader) == 32, "it has no padding");
static_assert(sizeof(Hello) == sizeof(FrameHeader), "a hello is read as the first frame's header");

/// Gets to one peer that are not answered: so many answers fit into its queue at any time.
inline constexpr std::uint32_t kMaxGets = 16;

}  // namespace hips::tcp
