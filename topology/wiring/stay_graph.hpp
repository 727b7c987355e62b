#pragma once

#include <string_view>

#include "topology/formats/cluster_topology.hpp"
#include "topology/wiring/wiring.hpp"

namespace hips::topology {

/// The graph of a wiring that is of no family, with a note that says so. The NICs of a server are numbered from 0: by the networks
/// that they lead to, in an order that is the same for all servers, then by the names at their other ends.
///
/// Errors   kInvalidArgument: more NICs than kMaxRails.
Result<ClusterTopology> stay_graph(std::string_view name, const ServerWiring& wiring);

}  // namespace hips::topology
