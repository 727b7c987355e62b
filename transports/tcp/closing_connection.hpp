#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/base/os/unique_fd.hpp"
#include "transports/tcp/outbox.hpp"

namespace hips::tcp {

/// A connection whose endpoint is closed. It is kept until everything sent on it, including the final frames,
/// has reached the peer.
///
/// Closing a socket that has unread data resets the connection, and data that the peer's kernel has not
/// acknowledged is lost. Incoming data is therefore read and discarded until the peer has acknowledged all.
class ClosingConnection {
 public:
  /// `final_frames` are sent after everything else. `outbox` is kept because the kernel may still read its
  /// headers (zero copy).
  ClosingConnection(UniqueFd fd, std::span<const std::byte> final_frames, Outbox outbox);

  /// Makes progress without blocking. True when finished: the peer has everything, has gone, has acknowledged
  /// nothing for half a second, or two seconds have passed. Destroying an unfinished one is safe; the kernel keeps sending if nothing is unread.
  bool progress();

 private:
  bool send_final_frames();

  Outbox outbox_;  // outlives the socket
  UniqueFd fd_;
  std::array<std::byte, 64> final_frames_{};
  std::size_t sent_ = 0, size_ = 0;
  bool shutdown_sent_ = false;
  std::int64_t begin_ns_;
};

}  // namespace hips::tcp
