#pragma once

#include <cstddef>
#include <vector>

#include "topology/cabling/cabling.hpp"
#include "topology/health/cable_tiers.hpp"
#include "topology/health/cut_points.hpp"
#include "topology/health/odd_cables.hpp"
#include "topology/health/uneven.hpp"

namespace hips::topology {

/// What an administrator wants to know of the cables of a cluster.
struct Health {
  CableTiers tiers;
  std::vector<SwitchLoad> loads;
  std::vector<Uneven> leaves;   ///< with another number of servers than most
  std::vector<Uneven> uplinks;  ///< switches with another number of cables upwards than most
  std::vector<MissingCables> missing;
  std::vector<OddCable> odd;
  std::vector<CutPoint> cut_points;  ///< none if the file does not tell how leaves are joined
  std::vector<Uneven> fewer_nics;
  std::size_t servers_with_one_cable = 0;  ///< that is up
};

/// Requires that the kinds of all nodes are known.
///
/// Cost     nearly linear in nodes and cables.
Health examine(const Cabling& cabling);

}  // namespace hips::topology
