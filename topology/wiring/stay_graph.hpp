#pragma once

#include <string_view>

#include "topology/formats/cluster_topology.hpp"
#include "topology/wiring/wiring.hpp"

namespace hips::topology {

/// The graph of a wiring that is of no family, with a note that says so. NICs that lead to a network of most servers have the
/// same number at all of them, the others follow by the names at their other ends.
///
/// Errors   kInvalidArgument: more NICs than kMaxRails.
Result<ClusterTopology> stay_graph(std::string_view name, const ServerWiring& wiring);

}  // namespace hips::topology
