#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "lib/base/os/unique_fd.hpp"
#include "lib/base/result.hpp"

namespace hips {

/// An IP address and port as the kernel takes it.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

/// "127.0.0.1:4711", "[::1]:4711"
std::string to_string(const SocketAddress& address);
[[nodiscard]] std::uint16_t port_of(const SocketAddress& address);
/// Any port of an IPv4 address, or of all addresses; AF_INET6 stands for IPv4 as well.
SocketAddress any_address(int family, std::uint32_t ipv4 = 0);
/// Of a bound socket.
SocketAddress local_address(int fd);

/// Whether what is sent there never leaves this host: one of its own addresses. False where the kernel cannot
/// say.
[[nodiscard]] bool is_of_this_host(const SocketAddress& address);
/// Of those the ones that nobody else has, either: 127.0.0.0/8 and ::1.
[[nodiscard]] bool is_loopback(const SocketAddress& address);

/// A listening, non-blocking TCP socket on `address` (port 0: any). kSystem names address and errno.
Result<UniqueFd> listen_tcp(const SocketAddress& address);
/// 0, or the errno of a connect that has ended.
int connect_error(int fd);

/// "cannot listen on 10.0.0.1:0: Address already in use", with the errno in its place.
Status socket_error(int error, const std::string& what);

}  // namespace hips
