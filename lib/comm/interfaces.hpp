#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/comm/socket.hpp"

namespace hips::comm {

/// An address of this machine and the network that it lies in.
struct LocalNetwork {
  SocketAddress address;          ///< port 0
  std::uint32_t prefix_bits = 0;  ///< how many leading bits the addresses of that network share
};

/// The addresses of this machine that others may reach: interfaces that are up, neither loopback nor
/// link-local. The one that the host's name stands for comes first, since data seldom runs there; then IPv4,
/// then IPv6.
///
/// Cost     a lookup of the host's own name.
/// Errors   kSystem: the interfaces cannot be listed, or none has such an address.
Result<std::vector<LocalNetwork>> local_networks();

/// In which order to try a peer's addresses: those of a network that this machine is part of; those behind
/// routers; last those that this machine has itself, as bridges of virtual machines and containers are alike
/// everywhere. Otherwise as given.
std::vector<SocketAddress> by_reachability(std::vector<SocketAddress> addresses,
                                           const std::vector<LocalNetwork>& mine);

/// Without the port: "10.0.0.1".
std::string host_of(const SocketAddress& address);

}  // namespace hips::comm
