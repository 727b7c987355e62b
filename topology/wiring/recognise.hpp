#pragma once

#include <string_view>

#include "lib/base/result.hpp"
#include "topology/cabling/cabling.hpp"
#include "topology/formats/cluster_topology.hpp"

namespace hips::topology {

/// Makes the topology that a list of cables describes: of a family, whatever the names of the nodes and the order of the
/// ports, also if up to three cables or servers are missing or cables have other rates than their like. Notes say what is
/// missing. Other wirings stay a graph. Where neither the file nor a name tells a server or a switch, it is decided by the cables
/// (kinds.hpp); if that makes no family, and one fits where all nodes are servers, they are.
///
/// `name` is that of the file, for messages.
///
/// Shapes   switches on no path between two servers are left out, and so are management networks (management.hpp); cables between the same two switches count as one of their rate
///          together. Leaf-spines and Fat-Trees may have any number of places without servers, a BCube as many as servers.
/// Cost     nearly linear in the cables: 1,024 servers take less than 1 s, 10,000 less than 15 s.
/// Errors   kInvalidArgument: no servers, two nodes of one name, or no cables join some servers.
Result<ClusterTopology> topology_of(std::string_view name, Cabling cabling);

}  // namespace hips::topology
