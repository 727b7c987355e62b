#include "lib/base/os/socket.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cerrno>
#include <system_error>

#include <fmt/format.h>

namespace hips {

std::string to_string(const SocketAddress& address) {
  char host[NI_MAXHOST] = "?", port[NI_MAXSERV] = "?";
  getnameinfo(address.get(), address.length, host, sizeof host, port, sizeof port,
              NI_NUMERICHOST | NI_NUMERICSERV);
  return address.storage.ss_family == AF_INET6 ? fmt::format("[{}]:{}", host, port)
                                               : fmt::format("{}:{}", host, port);
}

std::uint16_t port_of(const SocketAddress& address) {
  return ntohs(address.storage.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port);
}

SocketAddress any_address(int family, std::uint32_t ipv4, std::uint16_t port) {
  SocketAddress address;
  address.storage.ss_family = static_cast<sa_family_t>(family);
  if (family == AF_INET) {
    reinterpret_cast<sockaddr_in*>(&address.storage)->sin_addr.s_addr = htonl(ipv4);
    reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port = htons(port);
    address.length = sizeof(sockaddr_in);
  } else {
    reinterpret_cast<sockaddr_in6*>(&address.storage)->sin6_port = htons(port);
    address.length = sizeof(sockaddr_in6);  // all zero is in6addr_any
  }
  return address;
}

SocketAddress local_address(int fd) {
  SocketAddress address;
  address.length = sizeof address.storage;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0) address = {};
  return address;
}

bool is_loopback(const SocketAddress& address) {
  if (address.storage.ss_family == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_addr);
  return address.storage.ss_family == AF_INET &&
         ntohl(reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_addr.s_addr) >> 24U == 127;
}

bool is_local_address(const SocketAddress& address) {
  // connect() of a datagram socket sends nothing; it selects a route. The source address of a route to an own
  // address is that address, or 127.0.0.1 for the rest of 127.0.0.0/8.
  const UniqueFd fd(socket(address.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid() || connect(fd.get(), address.get(), address.length) != 0) return false;
  const SocketAddress from = local_address(fd.get());
  if (from.storage.ss_family == AF_INET6) {
    const in6_addr& own = reinterpret_cast<const sockaddr_in6*>(&from.storage)->sin6_addr;
    return IN6_ARE_ADDR_EQUAL(&own, &reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_addr);
  }
  return is_loopback(from) || (from.storage.ss_family == AF_INET &&
                               reinterpret_cast<const sockaddr_in*>(&from.storage)->sin_addr.s_addr ==
                                   reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_addr.s_addr);
}

Result<UniqueFd> listen_tcp(const SocketAddress& address) {
  UniqueFd fd(socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1, off = 0;
  if (fd.valid() && address.storage.ss_family == AF_INET6)
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (!fd.valid() || setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(fd.get(), address.get(), address.length) != 0 || listen(fd.get(), SOMAXCONN) != 0)
    return fail(socket_error(errno, fmt::format("cannot listen on {}", to_string(address))));
  return fd;
}

int connect_error(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  return error;
}

Status socket_error(int error, const std::string& what) {
  Status status =
      Status::error(Code::kSystem, fmt::format("{}: {}", what, std::generic_category().message(error)));
  status.sys_errno = error;
  return status;
}

}  // namespace hips
