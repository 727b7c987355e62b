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
///     recvmsg fills   [ rest of the payload, in the region ][ staged: next headers and first payload bytes ]
///
/// A large payload is received directly into its region, except its first bytes, which arrive with the header.
/// Small frames share a system call.
class Inbox {
 public:
  enum class ReceiveResult {
    kSome,     ///< received data; there may be more
    kAll,      ///< received data; the socket is empty now
    kNothing,  ///< the socket is empty
    kEnd,      ///< end of the stream, or an error
  };

  /// Makes one system call. At kEnd, `error` is the errno, or 0 if the peer ended the stream.
  /// Requires that next() returns nothing or in_payload() is true.
  ReceiveResult receive(int fd, int& error);

  /// The next header, if it is complete and no payload precedes it.
  std::optional<FrameHeader> next();
  /// The same for the hello with which a connection begins.
  std::optional<TcpHello> next_hello();

  /// Sets where the payload of the header just taken is written.
  void expect(std::span<std::byte> payload);
  /// Discards the payload of the header just taken.
  void expect_dropped(std::uint64_t bytes);
  /// Discards the rest of the current payload, because its memory is deregistered.
  void drop_payload();
  [[nodiscard]] bool in_payload() const { return !payload_.empty() || dropped_ > 0; }
  /// True when the stream ends between two frames.
  [[nodiscard]] bool between_frames() const { return !in_payload() && begin_ == end_; }

 private:
  ReceiveResult drop(int fd, int& error);

  /// A page with its headers arrives in one system call. At most this much of a large payload is copied twice.
  static constexpr std::size_t kStagedBytes = 8192;

  std::span<std::byte> payload_;  ///< rest of the current payload
  std::uint64_t dropped_ = 0;     ///< bytes of the current payload left to discard
  std::size_t begin_ = 0, end_ = 0;
  std::array<std::byte, kStagedBytes> staged_;
};

}  // namespace hips::tcp
