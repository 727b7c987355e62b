#include "tools/hips/picture/tiers.hpp"

#include <algorithm>

namespace hips::picture {

std::vector<std::int64_t> tiers_of(const Topology& topology, const Graph& graph) {
  std::vector<std::int64_t> tiers(graph.nodes.size(), 0);
  // The tier follows from the NIC for a cable of a server, and from the lower switch for a cable between
  // switches. Repeats until nothing changes, since a cable may be listed before those of lower tiers.
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
