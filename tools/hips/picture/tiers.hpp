#pragma once

#include <cstdint>
#include <vector>

#include <hips/topology.hpp>

namespace hips::picture {

/// How high each node of a graph stands: servers 0; switches by the level that they serve in server-centric
/// fabrics, and by their distance from the servers in trees.
///
/// Shapes   one entry for each node of `graph`.
std::vector<std::int64_t> tiers_of(const Topology& topology, const Graph& graph);

}  // namespace hips::picture
