#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/os/socket.hpp"
#include "lib/base/os/unique_fd.hpp"
#include "lib/base/result.hpp"

namespace hips::comm {

/// All addresses of a host; kInvalidArgument when the name does not resolve.
Result<std::vector<SocketAddress>> resolve(const std::string& host, std::uint16_t port);

/// `dead_after_ns` below: a peer's host that answers nothing for so long breaks the connection (ETIMEDOUT),
/// at least 2 s. A stopped process still answers, because its kernel does.

/// Takes a connection, non-blocking and with the options of a HiPS link; nothing when none is there.
std::optional<UniqueFd> accept_tcp(int listener, std::int64_t dead_after_ns);
/// Begins to connect without waiting: POLLOUT says when it is done, connect_error() how.
Result<UniqueFd> connect_tcp(const SocketAddress& address, std::int64_t dead_after_ns);

/// Cuts a byte stream into frames of {length u32, bytes}.
class FrameReader {
 public:
  explicit FrameReader(std::uint32_t max_bytes) : max_bytes_(max_bytes) {}
  enum class State { kOpen, kClosed, kBroken };
  /// Reads all that is there. kClosed: end of stream or an error (`sys_errno`). kBroken: a frame above the
  /// limit.
  State fill(int fd);
  /// The next whole frame.
  std::optional<std::vector<std::byte>> next();
  /// For streams that prove themselves with their first frame and may send more afterwards.
  void set_max_bytes(std::uint32_t max_bytes) { max_bytes_ = max_bytes; }
  int sys_errno = 0;

 private:
  std::uint32_t max_bytes_;
  std::vector<std::byte> buffer_;
};

/// Queues frames and writes as much as the socket takes.
class FrameWriter {
 public:
  void push(std::span<const std::byte> frame);
  /// False when the connection is broken.
  bool flush(int fd);
  [[nodiscard]] bool empty() const { return sent_ == buffer_.size(); }

 private:
  std::vector<std::byte> buffer_;
  std::size_t sent_ = 0;
};

}  // namespace hips::comm
