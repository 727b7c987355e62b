#include "topology/formats/told_wiring.hpp"

#include "topology/levels.hpp"

namespace hips::topology {

LinkKey key_of(const Graph& graph, const GraphLink& link) {
  const auto node = [&](std::int64_t number) -> const GraphNode& {
    return graph.nodes[static_cast<std::size_t>(number)];
  };
  if (!node(link.a).is_switch) return {node(link.a).id, link.a_port, "", ""};
  return {-1, kNoRail, node(link.a).name, node(link.b).name};
}

const std::string& switch_name(const ToldWiring& told, const GraphNode& node) {
  return told.switch_names.empty() ? node.name : told.switch_names[static_cast<std::size_t>(node.id)];
}

const std::string& name_in_links(const ToldWiring& told, const GraphNode& node) {
  const std::string& name = switch_name(told, node);
  return name.empty() ? node.name : name;
}

std::vector<std::size_t> levels_of_links(const Topology& topology) {
  Topology marked = topology;
  // A rate of its own for each level tells which level a link belongs to.
  marked.overrides.clear();
  const std::size_t node_levels = topology.levels.size() - network_levels(topology).size();
  for (std::size_t level = node_levels; level < marked.levels.size(); ++level)
    marked.levels[level].bandwidth_bytes_per_s = static_cast<double>(level - node_levels);
  std::vector<std::size_t> levels;
  for (const GraphLink& link : marked.graph().links)
    levels.push_back(
        topology.family == Family::kGraph ? 0 : static_cast<std::size_t>(link.bandwidth_bytes_per_s));
  return levels;
}

std::vector<bool> those_in_use(const Graph& graph) {
  std::vector<bool> in_use;
  for (const GraphNode& node : graph.nodes) in_use.push_back(!node.is_switch);
  // Cables above a tier may be listed before those below it.
  for (bool changed = true; changed;) {
    changed = false;
    for (const GraphLink& link : graph.links) {
      const auto lower = static_cast<std::size_t>(link.a), upper = static_cast<std::size_t>(link.b);
      if (!in_use[lower] || in_use[upper]) continue;
      in_use[upper] = changed = true;
    }
  }
  return in_use;
}

std::vector<std::vector<double>> cables_of_links(const Topology& topology, const Graph& graph,
                                                 const ToldWiring& told) {
  const auto levels = told.level_cables.empty() ? std::vector<std::size_t>() : levels_of_links(topology);
  std::vector<std::vector<double>> result;
  for (std::size_t i = 0; i < graph.links.size(); ++i) {
    const GraphLink& link = graph.links[i];
    const auto found = told.cables.empty() ? told.cables.end() : told.cables.find(key_of(graph, link));
    if (found != told.cables.end()) {
      result.push_back(found->second);
      continue;
    }
    const bool is_at_server = !graph.nodes[static_cast<std::size_t>(link.a)].is_switch;
    const auto count =
        static_cast<std::size_t>(is_at_server || levels.empty() ? 1 : told.level_cables[levels[i]]);
    result.emplace_back(count, link.up ? link.bandwidth_bytes_per_s / static_cast<double>(count) : 0.0);
  }
  return result;
}

}  // namespace hips::topology
