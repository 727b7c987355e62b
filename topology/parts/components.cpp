#include "topology/parts/components.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>

#include "topology/cables.hpp"
#include "topology/levels.hpp"
#include "topology/link_rates.hpp"
#include "topology/union_find.hpp"

namespace hips::topology {
namespace {

std::size_t count_sets(UnionFind& joined, std::int64_t servers) {
  std::set<std::size_t> sets;
  for (std::int64_t server = 0; server < servers; ++server)
    sets.insert(joined.find(static_cast<std::size_t>(server)));
  return sets.size();
}

std::size_t components_of_graph(const Graph& graph, std::int64_t servers) {
  UnionFind joined(graph.nodes.size());
  for (const GraphLink& link : graph.links)
    if (link.up) joined.join(static_cast<std::size_t>(link.a), static_cast<std::size_t>(link.b));
  return count_sets(joined, servers);
}

/// Each group of a level has switches, or cables to the next server.
std::size_t components_of_levels(const Topology& topology) {
  const std::int64_t servers = topology.num_servers();
  const LinkRates rates(topology, {});
  const auto is_up = [&](std::int64_t server, Rail rail) { return rates.nic(server, rail) > 0; };
  UnionFind joined(static_cast<std::size_t>(servers));
  const auto join = [&](std::int64_t a, std::int64_t b) {
    joined.join(static_cast<std::size_t>(a), static_cast<std::size_t>(b));
  };
  std::int64_t stride = 1;
  for (const Level& level : network_levels(topology)) {
    std::map<std::pair<std::int64_t, Rail>, std::int64_t> first;  // by group
    for (std::int64_t server = 0; server < servers; ++server) {
      if (is_of_cables(level)) {
        const auto next = other_end(topology, server, level.rails[0]);
        if (next && next->first >= 0 && is_up(server, level.rails[0])) join(server, next->first);
        continue;
      }
      const std::int64_t whole = topology.whole_server(server);
      // A tree joins all servers below a switch, whatever their lower digits.
      const std::int64_t group = level.kind == LevelKind::kTree
                                     ? whole / (stride * level.radix)
                                     : whole - whole / stride % level.radix * stride;
      for (const Rail rail : level.rails)
        if (is_up(server, rail)) join(server, first.try_emplace({group, rail}, server).first->second);
    }
    stride *= level.radix;
  }
  return count_sets(joined, servers);
}

}  // namespace

std::size_t num_components(const Topology& topology) {
  if (topology.wiring.value != nullptr)
    return components_of_graph(topology.wiring.value->graph, topology.num_servers());
  const auto is_down = [](const LinkOverride& link) { return !link.up; };
  if (topology.part.empty() && std::ranges::none_of(topology.overrides, is_down)) return 1;
  const bool between_switches = std::ranges::any_of(
      topology.overrides, [](const LinkOverride& link) { return !link.up && link.server < 0; });
  if (between_switches) return components_of_graph(topology.graph(), topology.num_servers());
  return components_of_levels(topology);
}

}  // namespace hips::topology
