#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "lib/base/os/unique_fd.hpp"
#include "lib/base/result.hpp"

namespace hips {

/// An IP address and port in the kernel's format.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

/// "127.0.0.1:4711", "[::1]:4711"
std::string to_string(const SocketAddress& address);
[[nodiscard]] std::uint16_t port_of(const SocketAddress& address);
/// A port of an IPv4 address, or of all addresses; AF_INET6 includes IPv4. Port 0: any.
SocketAddress any_address(int family, std::uint32_t ipv4 = 0, std::uint16_t port = 0);
/// The address of a bound socket.
SocketAddress local_address(int fd);

/// Whether traffic to the address stays on this node, because it is one of its own addresses. False if the
/// kernel cannot tell.
[[nodiscard]] bool is_local_address(const SocketAddress& address);
/// Whether it is a loopback address: 127.0.0.0/8 or ::1.
[[nodiscard]] bool is_loopback(const SocketAddress& address);

/// Creates a listening, non-blocking TCP socket on `address` (port 0: any). kSystem names address and errno.
Result<UniqueFd> listen_tcp(const SocketAddress& address);
/// The errno of a completed connect(); 0 if it succeeded.
int connect_error(int fd);

/// Makes an error such as "cannot listen on 10.0.0.1:0: Address already in use", with sys_errno.
Status socket_error(int error, const std::string& what);

}  // namespace hips
