#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hips/topology.hpp>

#include "lib/comm/setup/process_info.hpp"

namespace hips::comm {

/// What joins the nodes of a communicator, as their NICs show it.
struct NodeWiring {
  Topology nodes;              ///< one server for each node, in the order of their lowest ranks
  Topology topology;           ///< of all ranks
  std::string_view transport;  ///< between nodes: "tcp"
  /// By rank and rail, the NIC, as ProcessInfo numbers those of that transport.
  std::vector<std::vector<std::uint32_t>> nics;
  std::string text;  ///< "rail:9,2 over nic0, nic1"
};

/// Recognises the wiring between the nodes of these processes, from subnets and rates of the NICs that the transport
/// `transport` ("auto": the best) would use between them.
///
/// - A BCube, Torus or mesh whose servers are the nodes in the order of their ranks, and a part of a BCube. Their servers are assumed
///   not to forward for others.
/// - Else rails: the subnets in which every node has a NIC. Of them, the NICs that together are fastest with equal shares. The
///   network of the nodes' names is left out if there are two others, or if it is slower or has smaller packets; so are NICs of unknown rate beside
///   others, which are tunnels, all but one of the VLANs of one NIC, and addresses that several nodes have, which are bridges
///   inside a node.
///
/// None if the nodes have no such networks, if processes of one node have different NICs, or if there is one node. The same on all
/// ranks. Says nothing of switches inside a subnet.
///
/// Cost     linear in ranks and NICs for rails; topology/discover/placement.hpp for the others.
/// Threads  pure; any thread.
std::optional<NodeWiring> wiring_of(std::string_view transport, const std::vector<ProcessInfo>& processes);

}  // namespace hips::comm
