#pragma once

#include <cstddef>
#include <vector>

#include "topology/cabling/cabling.hpp"
#include "topology/health/cable_tiers.hpp"
#include "topology/health/odd_cables.hpp"

namespace hips::topology {

/// The cables of a switch to the tier below and to the tier above, those that are down excepted.
struct SwitchLoad {
  std::size_t node = 0;
  std::size_t servers = 0;  ///< that have a cable to it, up or down
  std::size_t below = 0, above = 0;
  /// Of these cables together, one direction. Slow cables below count at the rate of their like: they make a tier no less
  /// oversubscribed.
  double below_bytes_per_s = 0, above_bytes_per_s = 0;
};

/// By switch, in the order of the nodes. Switches that join no servers are left out.
std::vector<SwitchLoad> switch_loads(const Cabling& cabling, const CableTiers& tiers,
                                     const std::vector<OddCable>& odd);

/// A number that differs from that of most of its like.
struct Uneven {
  std::size_t node = 0;
  std::size_t count = 0;
  std::size_t usual = 0;  ///< of several that are as common, the largest
};

/// Leaf switches with another number of servers than most.
std::vector<Uneven> uneven_leaves(const std::vector<SwitchLoad>& loads, const CableTiers& tiers);

/// Switches with another number of cables to the tier above than most of their tier. Only of tiers of which not every switch has
/// cables to each of the tier above: those are in missing_cables().
std::vector<Uneven> uneven_uplinks(const Cabling& cabling, const CableTiers& tiers,
                                   const std::vector<SwitchLoad>& loads);

/// Two switches of neighbouring tiers that fewer cables join than most such pairs.
struct MissingCables {
  std::size_t lower = 0, upper = 0;  ///< nodes
  std::size_t count = 0;
  std::size_t usual = 0;
};

/// Of tiers of which at least three of four pairs have cables.
///
/// Cost     the pairs of such tiers, of which there are hardly more than cables.
std::vector<MissingCables> missing_cables(const Cabling& cabling, const CableTiers& tiers);

/// Servers with fewer cables than most.
std::vector<Uneven> servers_with_fewer_nics(const Cabling& cabling);

}  // namespace hips::topology
