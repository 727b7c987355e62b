#pragma once

#include <vector>

#include "topology/wiring/wiring.hpp"

namespace hips::topology {

/// The nodes that lie on a path between two servers, by node. A path visits no node twice and may lead through servers; cables
/// that are down count. What lies on none is a dead end.
///
/// Cost     linear in nodes and cables.
/// Source   biconnected components, Hopcroft and Tarjan 1973, doi:10.1145/362248.362272.
std::vector<bool> between_servers(const ServerWiring& wiring);

}  // namespace hips::topology
