#pragma once

#include <cstdint>
#include <vector>

#include <hips/topology.hpp>

namespace hips::picture {

/// The tier of each node of a graph: 0 for servers; for switches the level that they serve (1 and up) in
/// server-centric networks, and the distance from the servers in trees and graphs.
///
/// Shapes   one entry for each node of `graph`.
std::vector<std::int64_t> tiers_of(const Topology& topology, const Graph& graph);

}  // namespace hips::picture
