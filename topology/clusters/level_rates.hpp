#pragma once

#include <span>
#include <string_view>

#include "lib/base/result.hpp"
#include "topology/formats/cluster_topology.hpp"

namespace hips::topology {

/// Gives the levels of a topology whose file tells no rates, as Slurm's, those of the tiers of their cables (kCableTiers), in
/// bytes/s; 0: as it is. Every cable of a level gets the rate. The rates of the other levels are marked as assumed.
///
/// Errors   kInvalidArgument: a tier that the topology does not have. `name` is that of the file.
Result<void> give_level_rates(ClusterTopology& cluster, std::string_view name,
                              std::span<const double> tier_rates);

}  // namespace hips::topology
