#include "tools/hips/picture/tiers.hpp"

#include <algorithm>

namespace hips::picture {
namespace {

/// The distance of each node from the servers; of switches that join none 1.
std::vector<std::int64_t> distances(const Graph& graph) {
  std::vector<std::vector<std::size_t>> across(graph.nodes.size());
  for (const GraphLink& link : graph.links) {
    across[static_cast<std::size_t>(link.a)].push_back(static_cast<std::size_t>(link.b));
    across[static_cast<std::size_t>(link.b)].push_back(static_cast<std::size_t>(link.a));
  }
  std::vector<std::int64_t> tiers(graph.nodes.size(), -1);
  std::vector<std::size_t> reached;
  for (std::size_t node = 0; node < tiers.size(); ++node) {
    if (graph.nodes[node].is_switch) continue;
    tiers[node] = 0;
    reached.push_back(node);
  }
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const std::size_t other : across[reached[i]]) {
      if (tiers[other] >= 0) continue;
      tiers[other] = tiers[reached[i]] + 1;
      reached.push_back(other);
    }
  }
  for (std::int64_t& tier : tiers) tier = tier < 0 ? 1 : tier;
  return tiers;
}

}  // namespace

std::vector<std::int64_t> tiers_of(const Topology& topology, const Graph& graph) {
  if (topology.family == Family::kGraph) return distances(graph);
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
