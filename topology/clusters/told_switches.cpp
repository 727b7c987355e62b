#include "topology/clusters/told_switches.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "topology/cabling/cabling.hpp"

namespace hips::topology {
namespace {

/// Files name the switches of up to so many cables (file_links.cpp).
constexpr std::int64_t kMostNamed = 200'000;

/// By server: the switches at its NICs.
std::unordered_map<std::string_view, std::vector<std::string_view>> switches_by_server(
    const Cabling& cabling) {
  std::unordered_map<std::string_view, std::vector<std::string_view>> switches;
  for (const Cable& cable : cabling.cables)
    switches[cabling.nodes[cable.a.node].name].push_back(cabling.nodes[cable.b.node].name);
  return switches;
}

}  // namespace

void tell_switches(ClusterTopology& cluster) {
  const Topology& topology = cluster.topology;
  if (cluster.cabling.value == nullptr || topology.num_links > kMostNamed) return;
  const auto switches = switches_by_server(*cluster.cabling.value);
  const Graph graph = topology.graph();
  ToldWiring told = cluster.told;
  told.switch_names.resize(static_cast<std::size_t>(topology.num_switches));
  const auto name = [&](std::int64_t node) -> std::string& {
    return told.switch_names[static_cast<std::size_t>(graph.nodes[static_cast<std::size_t>(node)].id)];
  };
  for (const GraphLink& link : graph.links) {
    if (graph.nodes[static_cast<std::size_t>(link.a)].is_switch) continue;
    const auto found = switches.find(cluster.nodes[static_cast<std::size_t>(link.a)]);
    const auto nic = static_cast<std::size_t>(link.a_port);
    if (found == switches.end() || nic >= found->second.size()) return;
    std::string& known = name(link.b);
    if (!known.empty() && known != found->second[nic]) return;
    known = found->second[nic];
  }
  const auto in_use = those_in_use(graph);
  for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
    const GraphNode& one = graph.nodes[node];
    if (!one.is_switch || !in_use[node] || !name(static_cast<std::int64_t>(node)).empty()) continue;
    name(static_cast<std::int64_t>(node)) = one.name;
    told.assumed_switches.insert(one.id);
  }
  cluster.told = std::move(told);
}

}  // namespace hips::topology
