#include "tools/hips/picture/tiers.hpp"

#include <cstdint>
#include <utility>
#include <vector>

#include "topology/distances.hpp"

namespace hips::picture {
namespace {

/// The distance of each node from the servers; of switches that join none 1.
std::vector<std::int64_t> tiers_of_graph(const Graph& graph) {
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  for (const GraphLink& link : graph.links)
    edges.emplace_back(static_cast<std::size_t>(link.a), static_cast<std::size_t>(link.b));
  std::vector<std::size_t> servers;
  for (std::size_t node = 0; node < graph.nodes.size(); ++node)
    if (!graph.nodes[node].is_switch) servers.push_back(node);
  std::vector<std::int64_t> tiers;
  for (const std::size_t tier : topology::distances(graph.nodes.size(), edges, std::move(servers)))
    tiers.push_back(tier == SIZE_MAX ? 1 : static_cast<std::int64_t>(tier));
  return tiers;
}

}  // namespace

std::vector<std::int64_t> tiers_of(const Topology& topology, const Graph& graph) {
  if (topology.family == Family::kGraph) return tiers_of_graph(graph);
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
