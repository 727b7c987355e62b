#include "tools/hips/picture/tiers.hpp"

#include <algorithm>

namespace hips::picture {

std::vector<std::int64_t> tiers_of(const Topology& topology, const Graph& graph) {
  std::vector<std::int64_t> tiers(graph.nodes.size(), 0);
  // A server's cable tells by its NIC, the rails of a level being above one another, and a switch's by the
  // lower end. Every family lists the cables of lower tiers before those of higher ones, or both ends' tiers
  // are known by then.
  for (bool changed = true; changed;) {
    changed = false;
    for (const GraphLink& link : graph.links) {
      const auto a = static_cast<std::size_t>(link.a), b = static_cast<std::size_t>(link.b);
      if (!graph.nodes[b].is_switch) continue;
      std::int64_t wanted = 1;
      if (graph.nodes[a].is_switch) {
        wanted = tiers[a] == 0 ? 0 : tiers[a] + 1;
      } else if (topology.servers_relay) {
        wanted = 1 + link.a_port;
      }
      if (wanted <= tiers[b]) continue;
      tiers[b] = wanted;
      changed = true;
    }
  }
  return tiers;
}

}  // namespace hips::picture
