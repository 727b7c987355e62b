#include "topology/health/health.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

namespace hips::topology {
namespace {

/// The cabling without the nodes that are not kept.
Cabling only(const Cabling& cabling, const std::vector<bool>& keep) {
  Cabling result;
  result.has_uplinks = cabling.has_uplinks;
  std::vector<std::size_t> number(cabling.nodes.size());
  for (std::size_t node = 0; node < cabling.nodes.size(); ++node) {
    number[node] = result.nodes.size();
    if (keep[node]) result.nodes.push_back(cabling.nodes[node]);
  }
  for (Cable cable : cabling.cables) {
    if (!keep[cable.a.node] || !keep[cable.b.node]) continue;
    cable.a.node = number[cable.a.node];
    cable.b.node = number[cable.b.node];
    result.cables.push_back(std::move(cable));
  }
  return result;
}

/// Keeps the switches above the nodes that are kept: leaves of servers, spines of leaves, ...
void keep_switches_above(const Cabling& cabling, std::vector<bool>& keep) {
  const CableTiers tiers = cable_tiers(cabling);
  for (std::size_t tier = 1; tier <= tiers.highest; ++tier) {
    for (const Cable& cable : cabling.cables) {
      const bool a_is_lower = tiers.of[cable.a.node] < tiers.of[cable.b.node];
      const std::size_t lower = a_is_lower ? cable.a.node : cable.b.node;
      const std::size_t upper = a_is_lower ? cable.b.node : cable.a.node;
      if (tiers.of[upper] == tier && tiers.of[lower] + 1 == tier && keep[lower]) keep[upper] = true;
    }
  }
}

Cabling from_graph(const TopologyFile& file) {
  const Graph graph = file.topology.graph();
  Cabling cabling;
  for (const GraphNode& node : graph.nodes)
    cabling.nodes.push_back({.name = node.is_switch ? node.name : file.server_name(node.id),
                             .kind = node.is_switch ? CabledNode::Kind::kSwitch : CabledNode::Kind::kServer});
  const auto end = [&](std::int64_t number, Rail rail) {
    const GraphNode& node = graph.nodes[static_cast<std::size_t>(number)];
    std::string port;
    if (!node.is_switch && rail != kNoRail) port = file.device(node.id, rail);
    if (!node.is_switch && rail != kNoRail && port.empty()) port = fmt::format("NIC {}", rail);
    return CableEnd{.node = static_cast<std::size_t>(number), .port = std::move(port)};
  };
  for (const GraphLink& link : graph.links)
    cabling.cables.push_back({.a = end(link.a, link.a_port),
                              .b = end(link.b, link.b_port),
                              .bandwidth_bytes_per_s = link.bandwidth_bytes_per_s,
                              .latency_ns = link.latency_ns,
                              .up = link.up});
  return cabling;
}

}  // namespace

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

Cabling cabling_of(const TopologyFile& file) {
  if (file.cabling.value == nullptr) return from_graph(file);
  const Cabling& all = *file.cabling.value;
  const std::unordered_set<std::string_view> names(file.server_names.begin(), file.server_names.end());
  std::vector<bool> keep;
  std::size_t servers = 0, kept = 0;
  for (const CabledNode& node : all.nodes) {
    const bool is_server = node.kind == CabledNode::Kind::kServer;
    keep.push_back(is_server && names.contains(node.name));
    servers += is_server ? 1 : 0;
    kept += keep.back() ? 1 : 0;
  }
  if (kept == servers) return all;
  keep_switches_above(all, keep);
  return only(all, keep);
}

Cabling cabling_of_leaf(const Cabling& cabling, std::size_t leaf) {
  std::vector<bool> keep(cabling.nodes.size(), false);
  std::size_t servers = 0;
  for (const Cable& cable : cabling.cables) {
    if (cable.a.node != leaf && cable.b.node != leaf) continue;
    const std::size_t other = node_across(cable, leaf);
    if (cabling.nodes[other].kind != CabledNode::Kind::kServer || keep[other]) continue;
    keep[other] = true;
    ++servers;
  }
  std::set<std::pair<std::size_t, std::size_t>>
      cabled;  // switches and the servers of the leaf that have a cable to them
  for (const Cable& cable : cabling.cables) {
    for (const auto& [node, other] :
         {std::pair(cable.a.node, cable.b.node), std::pair(cable.b.node, cable.a.node)})
      if (keep[node] && cabling.nodes[other].kind != CabledNode::Kind::kServer) cabled.emplace(other, node);
  }
  std::map<std::size_t, std::size_t> servers_of;
  for (const auto& [node, server] : cabled) ++servers_of[node];
  for (const auto& [node, count] : servers_of)
    if (count == servers) keep[node] = true;
  keep[leaf] = true;
  return only(cabling, keep);
}

}  // namespace hips::topology
