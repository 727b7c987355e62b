#pragma once

#include <cstddef>
#include <vector>

#include "topology/cabling/cabling.hpp"
#include "topology/health/cable_tiers.hpp"

namespace hips::topology {

/// A cable that is down, or at another rate than most of its like.
struct OddCable {
  std::size_t cable = 0;         ///< index into Cabling::cables
  double usual_bytes_per_s = 0;  ///< of its like
};

/// Cables are alike if they lead from the same tier to the same tier and, if at least half of the servers have a port of that
/// name, from equal ports of servers; where only some names are so common, cables of other ports are like those at their switch. Cables
/// between two servers are alike if they join the same two names of ports, or names that few have. Of several rates that are as common, the highest is the usual one.
///
/// Cost     n log n in the cables.
/// Returns  ascending.
std::vector<OddCable> odd_cables(const Cabling& cabling, const CableTiers& tiers);

}  // namespace hips::topology
