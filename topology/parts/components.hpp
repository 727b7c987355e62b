#pragma once

#include <cstddef>

#include <hips/topology.hpp>

namespace hips::topology {

/// Into how many components the servers in use fall: those of one component reach each other, directly or through one another, over
/// cables that are up. 1: they are connected.
///
/// Cost     linear in servers and levels, or in the cables if there are cables between switches that are down, or if it is a graph;
///          nothing if all servers of a family are in use and all cables are up.
std::size_t num_components(const Topology& topology);

}  // namespace hips::topology
