#pragma once

#include "topology/formats/cluster_topology.hpp"

namespace hips::topology {

/// Sets the names of the switches that cluster.cabling has, those of servers; marks the switches above them as assumed. Does nothing
/// where the topology has other switches, such as one instead of leaves of one server, or too many cables to name their ends in a file.
///
/// Cost     linear in the cables.
void tell_switches(ClusterTopology& cluster);

}  // namespace hips::topology
