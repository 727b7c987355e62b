#include "transports/tcp/link.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include <fmt/format.h>

namespace hips::tcp {
namespace {

SocketAddress with_any_port(SocketAddress address) {
  if (address.storage.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(&address.storage)->sin6_port = 0;
  } else {
    reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port = 0;
  }
  return address;
}

}  // namespace

void set_up_link(int fd, const LinkOptions& options) {
  const auto set = [fd](int level, int name, int value) {
    (void)setsockopt(fd, level, name, &value, sizeof value);
  };
  const auto dead_after_s =
      static_cast<int>(std::clamp<std::int64_t>(options.dead_after_ns / 1'000'000'000, 2, 3600));
  const int interval_s = std::max(1, dead_after_s / 10);
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  // TCP_USER_TIMEOUT is not set: it would also end connections whose receiver answers but has no room. A rank
  // that computes for minutes without polling is slow, not dead.
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, interval_s);
  set(IPPROTO_TCP, TCP_KEEPINTVL, interval_s);
  set(IPPROTO_TCP, TCP_KEEPCNT, std::max(1, dead_after_s / interval_s - 1));
  // The SYN is sent again after 1, 2, 4, ... s: n retries end after 2^(n+1) - 1 s.
  int attempts = 1;
  while (attempts < 10 && (2 << attempts) - 1 < dead_after_s) ++attempts;
  set(IPPROTO_TCP, TCP_SYNCNT, attempts);
  if (options.socket_buffer_bytes > 0) {
    set(SOL_SOCKET, SO_SNDBUF, static_cast<int>(options.socket_buffer_bytes));
    set(SOL_SOCKET, SO_RCVBUF, static_cast<int>(options.socket_buffer_bytes));
  }
}

void choose_congestion_control(int fd, const SocketAddress& peer) {
  // Every kernel has it and every user may choose it. A failure costs only speed.
  constexpr std::string_view kNeverPaces = "reno";
  if (is_local_address(peer))
    (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, kNeverPaces.data(), kNeverPaces.size());
}

Result<UniqueFd> dial(const SocketAddress& from, const SocketAddress& to, const LinkOptions& options) {
  UniqueFd fd(socket(to.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return fail(socket_error(errno, "tcp: cannot make a socket"));
  set_up_link(fd.get(), options);
  choose_congestion_control(fd.get(), to);
  const auto refused = [&](int error) {
    Status status =
        socket_error(error, fmt::format("tcp: cannot connect from {} to {}", to_string(from), to_string(to)));
    if (error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH) status.code = Code::kPeerLost;
    status.scope = Scope::kPeer;
    return fail(std::move(status));
  };
  // The port is chosen at connect(), so that connections to different peers may share one. A node with many
  // ranks would otherwise run out of ports.
  const int on = 1;
  (void)setsockopt(fd.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
  const SocketAddress local = with_any_port(from);
  if (bind(fd.get(), local.get(), local.length) != 0) return refused(errno);
  if (connect(fd.get(), to.get(), to.length) != 0 && errno != EINPROGRESS) return refused(errno);
  return fd;
}

}  // namespace hips::tcp
