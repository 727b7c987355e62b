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

/// Returns all addresses of a host name; kInvalidArgument if it does not resolve.
Result<std::vector<SocketAddress>> resolve(const std::string& host, std::uint16_t port);

/// `dead_after_ns` below: a connection breaks (ETIMEDOUT) if the peer's node does not respond for this long, at
/// least 2 s. The kernel responds for a stopped process.

/// Accepts a pending connection, non-blocking and with the options of a HiPS link. Nothing if none is pending.
/// kSystem: this process has no descriptor left, and the connection stays pending.
Result<std::optional<UniqueFd>> accept_tcp(int listener, std::int64_t dead_after_ns);
/// Raises the soft limit of descriptors, if it is lower, to what is open already and `more`, as far as the hard
/// limit allows.
void allow_descriptors(std::size_t more);
/// Starts to connect without waiting. POLLOUT signals completion; connect_error() returns the outcome.
Result<UniqueFd> connect_tcp(const SocketAddress& address, std::int64_t dead_after_ns);

/// Splits a byte stream into frames of {length u32, bytes}.
class FrameReader {
 public:
  explicit FrameReader(std::uint32_t max_bytes) : max_bytes_(max_bytes) {}
  enum class State { kOpen, kClosed, kBroken };
  /// Reads what is available, until there is a whole frame. kClosed: end of stream or an error (`sys_errno`). kBroken: the next
  /// frame exceeds the limit.
  State fill(int fd);
  /// Returns the next complete frame, if any.
  std::optional<std::vector<std::byte>> next();
  /// Raises the limit, for peers that may send larger frames after their first one is verified.
  void set_max_bytes(std::uint32_t max_bytes) { max_bytes_ = max_bytes; }
  int sys_errno = 0;

 private:
  [[nodiscard]] std::optional<std::uint32_t> next_length() const;

  std::uint32_t max_bytes_;
  std::vector<std::byte> buffer_;
};

/// Queues frames and writes as much as the socket accepts.
class FrameWriter {
 public:
  void push(std::span<const std::byte> frame);
  /// Returns false if the connection is broken.
  bool flush(int fd);
  [[nodiscard]] bool empty() const { return sent_ == buffer_.size(); }

 private:
  std::vector<std::byte> buffer_;
  std::size_t sent_ = 0;
};

}  // namespace hips::comm
