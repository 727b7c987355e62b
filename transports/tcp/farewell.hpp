#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/base/os/unique_fd.hpp"
#include "transports/tcp/outbox.hpp"

namespace hips::tcp {

/// The end of a connection whose endpoint is closed: its last words, and all that was sent before, must get
/// through.
///
/// A socket that is closed while it has unread data resets the connection, and what the peer's kernel does
/// not have yet is lost. So what comes in is read and forgotten until the peer's kernel has everything.
class Farewell {
 public:
  /// `outbox`: whose headers the kernel may still read.
  Farewell(UniqueFd fd, std::span<const std::byte> last_words, Outbox outbox);

  /// Does what can be done now; true when it is over: the peer has it all, or is gone, or two seconds passed.
  /// Whoever is not over may be dropped too: the kernel goes on by itself where nothing is unread.
  bool step();

 private:
  bool send_last_words();

  Outbox outbox_;  // outlives the socket
  UniqueFd fd_;
  std::array<std::byte, 64> last_words_{};
  std::size_t sent_ = 0, size_ = 0;
  bool shut_ = false;
  std::int64_t until_ns_;
};

}  // namespace hips::tcp
