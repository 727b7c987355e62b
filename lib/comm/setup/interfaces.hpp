#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/config/device_filter.hpp"
#include "lib/base/result.hpp"
#include "lib/comm/setup/socket.hpp"

namespace hips::comm {

/// An address of this node and its network.
struct LocalNetwork {
  SocketAddress address;          ///< port 0
  std::uint32_t prefix_bits = 0;  ///< length of the network prefix
  std::string interface {};       ///< "eth0"
  bool loopback = false;
};

/// Returns the addresses of this node that other nodes may reach: those of interfaces that are up, without
/// loopback and link-local ones. The address of the host name comes first, because data rarely uses that
/// network; then IPv4, then IPv6.
///
/// Cost     a lookup of this node's host name.
/// Errors   kSystem: the interfaces cannot be listed, or none has such an address.
Result<std::vector<LocalNetwork>> local_networks();

/// Returns the addresses for data, in rail order: one per interface that HIPS_SOCKET_IFNAME (`ifname`) selects.
/// An interface that it names twice comes twice. If it names none, the interfaces of containers and virtual
/// machines are left out, and that of the host name comes last, because it is often the management network.
/// Loopback is used only if it is named or if nothing else is left.
///
/// Cost     a lookup of this node's host name, once per process.
/// Errors   kInvalidArgument: `ifname` is invalid or matches no interface; lists the interfaces.
///          kUnsupported: this node has no address.
Result<std::vector<LocalNetwork>> data_networks(const std::string& ifname);

/// Makes the choice of data_networks() among `all`. Pure.
std::vector<LocalNetwork> choose_data_networks(const std::vector<LocalNetwork>& all,
                                               const DeviceFilter& filter);

/// Sorts a peer's addresses into the order in which to try them: first those in a network of this node, then
/// those behind routers, last those that this node has itself, because bridges of virtual machines and
/// containers have the same address on every node. Keeps the given order within each class.
std::vector<SocketAddress> by_reachability(std::vector<SocketAddress> addresses,
                                           const std::vector<LocalNetwork>& mine);

/// True if the name of this node leads to the address. The lookup may query a name server, so it happens once.
bool is_named(const LocalNetwork& network);

/// "10.0.1.0/24"
std::string subnet_of(const LocalNetwork& network);

/// Returns the address without the port: "10.0.0.1".
std::string host_of(const SocketAddress& address);

}  // namespace hips::comm
