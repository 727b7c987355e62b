#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "transports/tcp/wire.hpp"

namespace hips::tcp {

/// The receiving end of a stream of headers and payloads.
///
///     recvmsg fills   [ rest of the payload, in the region ][ staged: next headers and beginnings ]
///
/// A large payload goes straight where it belongs but for its first bytes, which came along with its header;
/// small ones share a system call.
class Inbox {
 public:
  enum class Got {
    kSome,     ///< and there may be more
    kAll,      ///< and the socket is empty now
    kNothing,  ///< the socket is empty
    kEnd,      ///< of the stream, or an error
  };

  /// One system call. `error` is the errno at kEnd, 0 where the peer ended it.
  /// Needs: next() gives nothing, or a payload is under way.
  Got receive(int fd, int& error);

  /// The next header, where it is there whole and no payload is under way.
  std::optional<FrameHeader> next();
  /// The same bytes, read as what a connection begins with.
  std::optional<Hello> next_hello();

  /// Bytes that follow the header just taken, and where they go.
  void expect(std::span<std::byte> payload);
  /// The same, where they go nowhere.
  void expect_dropped(std::uint64_t bytes);
  /// The memory of the payload under way is no more: the rest of it goes nowhere.
  void drop_payload();
  [[nodiscard]] bool payload_under_way() const { return !payload_.empty() || dropped_ > 0; }
  /// True when the stream ends between two frames.
  [[nodiscard]] bool between_frames() const { return !payload_under_way() && begin_ == end_; }

 private:
  Got drop(int fd, int& error);

  /// A message of a page and its headers comes with one system call; of a large one so much is copied twice.
  static constexpr std::size_t kStagedBytes = 8192;

  std::span<std::byte> payload_;  ///< what is still to come of it
  std::uint64_t dropped_ = 0;     ///< the same, of one that goes nowhere
  std::size_t begin_ = 0, end_ = 0;
  std::array<std::byte, kStagedBytes> staged_;
};

}  // namespace hips::tcp
