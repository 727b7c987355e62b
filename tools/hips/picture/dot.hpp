#pragma once

#include <string>

#include "topology/formats/topology_file.hpp"

namespace hips::picture {

/// A topology as a graph for Graphviz: servers in one row, switches by tier, one edge per cable. Edges show
/// NIC numbers at servers, and the rate if it differs from the level's. Links that are down are dashed.
///
/// Cost     linear in the cables.
/// Errors   kUnsupported: more than kMostDrawn servers and switches (drawable.hpp).
/// Example  hips topo -t bcube:3,1 --format dot | dot -Tsvg > bcube.svg
Result<std::string> topology_dot(const topology::TopologyFile& file);

}  // namespace hips::picture
