#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/base/unique_fd.hpp"

namespace hips::comm {

/// An IP address and port as the kernel takes it.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

/// All addresses of a host; kInvalidArgument when the name does not resolve.
Result<std::vector<SocketAddress>> resolve(const std::string& host, std::uint16_t port);
/// "127.0.0.1:4711", "[::1]:4711"
std::string to_string(const SocketAddress& address);
[[nodiscard]] std::uint16_t port_of(const SocketAddress& address);
/// Any port of an IPv4 address, or of all addresses; AF_INET6 stands for IPv4 as well.
SocketAddress any_address(int family, std::uint32_t ipv4 = 0);
/// Of a bound socket.
SocketAddress local_address(int fd);

/// `dead_after_ns` below: a peer's host that answers nothing for so long breaks the connection (ETIMEDOUT),
/// at least 2 s. A stopped process still answers, because its kernel does.

/// A listening, non-blocking TCP socket on `address` (port 0: any). kSystem names address and errno.
Result<UniqueFd> listen_tcp(const SocketAddress& address);
/// Takes a connection, non-blocking and with the options of a HiPS link; nothing when none is there.
std::optional<UniqueFd> accept_tcp(int listener, std::int64_t dead_after_ns);
/// Begins to connect without waiting: POLLOUT says when it is done, connect_error() how.
Result<UniqueFd> connect_tcp(const SocketAddress& address, std::int64_t dead_after_ns);
/// 0, or the errno of a connect that has ended.
int connect_error(int fd);

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
