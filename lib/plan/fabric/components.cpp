#include "lib/plan/fabric/components.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "topology/families/family.hpp"
#include "topology/graph_wiring.hpp"
#include "topology/parts/components.hpp"

namespace hips::plan {
namespace {

/// Whether the servers would be connected if all cables were up.
bool is_cut_by_cables(const Topology& topology) {
  if (topology.family != Family::kGraph) {
    Topology healthy = topology;
    healthy.overrides.clear();
    return topology::num_components(healthy) == 1;
  }
  Graph graph = topology.graph();
  for (GraphLink& link : graph.links) link.up = true;
  const auto healthy = topology::make_graph_topology(std::move(graph));
  return healthy && topology::num_components(*healthy) == 1;
}

}  // namespace

Status check_joined(const Topology& topology, Forest& forest) {
  std::map<std::int64_t, std::vector<std::string>> components;
  for (std::int64_t server = 0; server < topology.num_servers(); ++server) {
    components[forest.find(server)].push_back(topology::server_address(topology, server));
  }
  if (components.size() == 1) return Status::success();
  constexpr std::size_t kShown = 8;
  std::vector<std::string> texts;
  for (auto& [first, members] : components) {
    if (texts.size() == kShown) {
      texts.push_back(fmt::format("and {} more", components.size() - kShown));
      break;
    }
    const std::size_t more = members.size() > kShown ? members.size() - kShown : 0;
    if (more > 0) members.resize(kShown);
    texts.push_back(
        fmt::format("{{{}{}}}", fmt::join(members, ", "), more > 0 ? fmt::format(" and {} more", more) : ""));
  }
  const bool is_cut = is_cut_by_cables(topology);
  return Status::error(
      Code::kUnsupported,
      fmt::format(
          "plan: the servers of {} are not connected, {}: {} components, {}. {}use only those of one component",
          topology.spec, is_cut ? "as cables are down" : "unless others relay for them", components.size(),
          fmt::join(texts, ", "), is_cut ? "Write state: up, or " : "Add servers that join them, or "));
}

Status check_switches_joined(const Topology& topology) {
  if (std::ranges::none_of(topology.overrides,
                           [](const LinkOverride& link) { return link.server < 0 && !link.up; }))
    return Status::success();
  const Graph graph = topology.graph();
  Forest forest(static_cast<std::int64_t>(graph.nodes.size()));
  for (const GraphLink& link : graph.links)
    if (link.up) forest.join(link.a, link.b);
  return check_joined(topology, forest);
}

}  // namespace hips::plan
