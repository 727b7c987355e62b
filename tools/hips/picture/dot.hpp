#pragma once

#include <string>

#include "topology/formats/topology_file.hpp"

namespace hips::picture {

/// A topology as a graph for Graphviz: servers in a row of their own, switches by tier, a cable for each
/// edge, with NIC numbers at servers and the rate where it is not its level's; what is down is dashed.
///
/// Cost     the cables.
/// Errors   kUnsupported: more than kMostDrawn servers and switches (drawable.hpp).
/// Example  hips topo -t bcube:3,1 --format dot | dot -Tsvg > bcube.svg
Result<std::string> topology_dot(const topology::TopologyFile& file);

}  // namespace hips::picture
