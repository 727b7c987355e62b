#include "topology/health/health.hpp"

#include <algorithm>

namespace hips::topology {

Health examine(const Cabling& cabling) {
  Health health;
  health.tiers = cable_tiers(cabling);
  health.odd = odd_cables(cabling, health.tiers);
  health.loads = switch_loads(cabling, health.tiers, health.odd);
  health.leaves = uneven_leaves(health.loads, health.tiers);
  health.uplinks = uneven_uplinks(cabling, health.tiers, health.loads);
  health.missing = missing_cables(cabling, health.tiers);
  if (cabling.has_uplinks) health.cut_points = cut_points(cabling);
  health.fewer_nics = servers_with_fewer_nics(cabling);
  const auto of = cables_by_node(cabling);
  for (std::size_t node = 0; node < of.size(); ++node) {
    if (cabling.nodes[node].kind != CabledNode::Kind::kServer) continue;
    const auto up =
        std::ranges::count_if(of[node], [&](std::size_t cable) { return cabling.cables[cable].up; });
    if (up == 1) ++health.servers_with_one_cable;
  }
  return health;
}

}  // namespace hips::topology
