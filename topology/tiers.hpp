#pragma once

#include <cstdint>
#include <vector>

#include <hips/topology.hpp>

#include "topology/graph_wiring.hpp"

namespace hips::topology {

/// The switches of one tier of a tree. The servers below share their cables upwards.
struct Tier {
  const char* name = "";  ///< "edge switches"
  const char* one = "";   ///< "edge switch"
  std::int64_t servers_below =
      0;  ///< of one switch, or one pod; 0: the tier has the cables of a graph, by number
  std::int64_t count = 0;
  double bandwidth_bytes_per_s = 0;  ///< of all cables upwards together, one direction
};

/// The tiers of a topology: edge switches and pods of a Fat-Tree, leaf switches of a leaf-spine, the cables of a graph (also
/// those of servers, which no route crosses), none of others.
std::vector<Tier> tiers(const Topology& topology);

/// Calls visit(tier, index, out) for each tier whose cables a hop between two servers in use crosses: `out` is the direction
/// upwards, or from end a to end b of a cable of a graph.
template <typename Visit>
void visit_tiers(const Topology& topology, const std::vector<Tier>& tiers, const Hop& servers,
                 Visit&& visit) {
  if (topology.wiring.value != nullptr) {
    for (const auto& [cable, out] : switch_path(*topology.wiring.value, servers))
      visit(std::size_t{0}, static_cast<std::size_t>(cable), out);
    return;
  }
  for (std::size_t t = 0; t < tiers.size(); ++t) {
    const std::int64_t over_from = topology.whole_server(servers.from) / tiers[t].servers_below;
    const std::int64_t over_to = topology.whole_server(servers.to) / tiers[t].servers_below;
    if (over_from == over_to) continue;
    visit(t, static_cast<std::size_t>(over_from), true);
    visit(t, static_cast<std::size_t>(over_to), false);
  }
}

/// The bandwidth of each rail in one direction.
std::vector<double> rail_bandwidths(const Topology& topology);

}  // namespace hips::topology
