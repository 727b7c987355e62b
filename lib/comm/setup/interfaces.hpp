#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/config/device_filter.hpp"
#include "lib/base/result.hpp"
#include "lib/comm/setup/socket.hpp"

namespace hips::comm {

/// An address of this machine and the network that it lies in.
struct LocalNetwork {
  SocketAddress address;          ///< port 0
  std::uint32_t prefix_bits = 0;  ///< how many leading bits the addresses of that network share
  std::string interface {};       ///< "eth0"
  bool loopback = false;
};

/// The addresses of this machine that others may reach: interfaces that are up, neither loopback nor
/// link-local. The one that the host's name stands for comes first, since data seldom runs there; then IPv4,
/// then IPv6.
///
/// Cost     a lookup of the host's own name.
/// Errors   kSystem: the interfaces cannot be listed, or none has such an address.
Result<std::vector<LocalNetwork>> local_networks();

/// The addresses that data may run over, in the order of rails: one for each interface that
/// HIPS_SOCKET_IFNAME
/// (`ifname`) lets pass; an interface that it names twice comes twice. Where it names none, not those of
/// containers and virtual machines, and the one that the host's name stands for comes last, as it is often
/// the management network. Loopback only where it is named, or nothing else is left.
///
/// Cost     a lookup of the host's own name, once for each process.
/// Errors   kInvalidArgument: `ifname` is wrong or lets nothing pass; lists what there is.
///          kUnsupported: this host has no address.
Result<std::vector<LocalNetwork>> data_networks(const std::string& ifname);

/// The choice that data_networks() makes among all addresses. Pure.
std::vector<LocalNetwork> choose_data_networks(const std::vector<LocalNetwork>& all,
                                               const DeviceFilter& filter);

/// In which order to try a peer's addresses: those of a network that this machine is part of; those behind
/// routers; last those that this machine has itself, as bridges of virtual machines and containers are alike
/// everywhere. Otherwise as given.
std::vector<SocketAddress> by_reachability(std::vector<SocketAddress> addresses,
                                           const std::vector<LocalNetwork>& mine);

/// Without the port: "10.0.0.1".
std::string host_of(const SocketAddress& address);

}  // namespace hips::comm
