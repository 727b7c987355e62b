#include "tools/hips-write/control.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "tools/hips-write/ticks.hpp"

namespace hips::write {
namespace {

constexpr std::uint32_t kMagic = 0x68697077;  // "hipw"
constexpr std::uint32_t kMaxBytes = 1U << 20U;

struct Head {
  std::uint32_t magic = htonl(kMagic);
  std::uint32_t bytes = 0;
};

Status system_error(const std::string& what) {
  Status status = Status::error(Code::kSystem, fmt::format("{}: {}", what, std::strerror(errno)));
  status.sys_errno = errno;
  return status;
}

std::int64_t deadline_of(int timeout_ms) {
  return timeout_ms < 0 ? -1 : monotonic_ns() + std::int64_t{timeout_ms} * 1'000'000;
}

/// Returns false at the deadline.
bool wait_for(int fd, short events, std::int64_t deadline_ns) {
  while (true) {
    int left_ms = -1;
    if (deadline_ns >= 0)
      left_ms =
          static_cast<int>(std::max<std::int64_t>(0, (deadline_ns - monotonic_ns() + 999'999) / 1'000'000));
    pollfd entry{.fd = fd, .events = events, .revents = 0};
    const int ready = poll(&entry, 1, left_ms);
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

/// Detects a node that no longer answers after about four seconds.
void keep_alive(int fd) {
  const int on = 1, idle_s = 1, between_s = 1, probes = 3;
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between_s, sizeof between_s);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

std::string text_of(const sockaddr* address, socklen_t length) {
  std::array<char, NI_MAXHOST> host{};
  if (getnameinfo(address, length, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) != 0)
    return "unknown address";
  const std::string text = host.data();
  return text.starts_with("::ffff:") ? text.substr(7) : text;
}

/// The port of a listening socket.
std::int32_t port_of(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  (void)getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

Result<ControlConnection> ControlConnection::serve(std::int32_t port,
                                                   const std::function<void(std::int32_t port)>& waiting) {
  // One socket for both families, if the node has IPv6.
  UniqueFd listener(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool six = listener.valid();
  if (!six) listener.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener.valid()) return fail(system_error("socket"));
  const int on = 1, off = 0;
  (void)setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_storage any{};
  socklen_t length = sizeof(sockaddr_in);
  if (six) {
    (void)setsockopt(listener.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    auto& address = reinterpret_cast<sockaddr_in6&>(any);
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(static_cast<std::uint16_t>(port));
    length = sizeof address;
  } else {
    auto& address = reinterpret_cast<sockaddr_in&>(any);
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
  }
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&any), length) != 0 ||
      listen(listener.get(), 1) != 0)
    return fail(system_error(fmt::format("cannot listen on TCP port {} (-p chooses another)", port)));
  waiting(port_of(listener.get()));
  UniqueFd fd;
  sockaddr_storage from{};
  do {
    length = sizeof from;
    fd.reset(accept4(listener.get(), reinterpret_cast<sockaddr*>(&from), &length, SOCK_CLOEXEC));
  } while (!fd.valid() && (errno == EINTR || errno == ECONNABORTED));
  if (!fd.valid()) return fail(system_error("accept"));
  keep_alive(fd.get());
  return ControlConnection(std::move(fd), text_of(reinterpret_cast<const sockaddr*>(&from), length));
}

Result<ControlConnection> ControlConnection::connect(const std::string& host, std::int32_t port,
                                                     int timeout_ms) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); error != 0)
    return fail(Code::kInvalidArgument, fmt::format("unknown host \"{}\": {}", host, gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(found, &freeaddrinfo);
  const std::int64_t deadline_ns = deadline_of(timeout_ms);
  int error = 0, num_left = 0;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) ++num_left;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next, --num_left) {
    // Each address gets its share of the time that is left: one that does not answer leaves some to the next.
    const std::int64_t now_ns = monotonic_ns();
    const std::int64_t until_ns = deadline_ns < 0 ? -1 : now_ns + (deadline_ns - now_ns) / num_left;
    UniqueFd fd(socket(entry->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd.valid()) {
      error = errno;
      continue;
    }
    error = ::connect(fd.get(), entry->ai_addr, entry->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      if (!wait_for(fd.get(), POLLOUT, until_ns)) {
        error = ETIMEDOUT;
        continue;
      }
      socklen_t length = sizeof error;
      (void)getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    }
    if (error != 0) continue;
    (void)fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
    keep_alive(fd.get());
    return ControlConnection(std::move(fd), host);
  }
  if (error == ECONNREFUSED) {
    return fail(Code::kPeerLost,
                fmt::format("no server listens at {} port {}; first start the same command there, without a "
                            "host and with the same -p",
                            host, port));
  }
  if (error == ETIMEDOUT) {
    return fail(Code::kPeerLost,
                fmt::format("{} port {} did not answer within {} s; check the address and whether a firewall "
                            "blocks TCP",
                            host, port, timeout_ms / 1000));
  }
  return fail(Code::kPeerLost, fmt::format("cannot reach {} port {}: {}", host, port, std::strerror(error)));
}

Status ControlConnection::lost() const {
  return Status::error(Code::kPeerLost,
                       fmt::format("the other end, {}, has exited; see its own output", peer_));
}

Status ControlConnection::read_all(char* to, std::size_t bytes, std::int64_t deadline_ns) {
  while (bytes > 0) {
    if (!wait_for(fd_.get(), POLLIN, deadline_ns))
      return Status::error(Code::kPeerLost, fmt::format("the other end, {}, no longer answers", peer_));
    const ssize_t got = recv(fd_.get(), to, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return lost();
    to += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return Status::success();
}

Result<std::string> ControlConnection::exchange(const std::string& mine, int timeout_ms) {
  const Head head{.bytes = htonl(static_cast<std::uint32_t>(mine.size()))};
  std::string out(reinterpret_cast<const char*>(&head), sizeof head);
  out += mine;
  // Much smaller than a socket's buffer, so that it never blocks for long.
  for (std::size_t sent = 0; sent < out.size();) {
    const ssize_t now = send(fd_.get(), out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
    if (now < 0 && errno == EINTR) continue;
    if (now < 0) return fail(lost());
    sent += static_cast<std::size_t>(now);
  }
  const std::int64_t deadline_ns = deadline_of(timeout_ms);
  Head theirs;
  if (Status status = read_all(reinterpret_cast<char*>(&theirs), sizeof theirs, deadline_ns); !status.ok())
    return fail(std::move(status));
  const std::uint32_t bytes = ntohl(theirs.bytes);
  if (ntohl(theirs.magic) != kMagic || bytes > kMaxBytes) {
    return fail(
        Code::kMismatch,
        fmt::format("{} runs another program; start the same version of this program at both ends", peer_));
  }
  std::string text(bytes, 0);
  if (Status status = read_all(text.data(), text.size(), deadline_ns); !status.ok())
    return fail(std::move(status));
  return text;
}

Status ControlConnection::check() const {
  char byte = 0;
  const ssize_t got = recv(fd_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)))
    return Status::success();
  return lost();
}

PeerMonitor::PeerMonitor(const ControlConnection& control) : control_(control), last_check_(ticks()) {}

bool PeerMonitor::check_now() {
  const std::uint64_t now = ticks();
  if (now - last_check_ < kTicksPerCheck) return false;
  last_check_ = now;
  status_ = control_.check();
  return !status_.ok();
}

}  // namespace hips::write
