#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "topology/families/family.hpp"

namespace hips {

namespace {

/// A cable takes about 60 bytes; larger graphs are rejected.
constexpr std::int64_t kMaxLinks = std::int64_t{1} << 22;

/// The wiring of the whole without the servers that are not in use, and without their cables.
Graph part_of(const Topology& topology) {
  Topology whole = topology;
  whole.part.clear();
  for (LinkOverride& link : whole.overrides)
    if (link.server >= 0) link.server = topology.whole_server(link.server);
  Graph all = whole.graph();
  Graph graph;
  std::vector<std::int64_t> node_of(all.nodes.size(), -1);
  for (std::size_t i = 0; i < all.nodes.size(); ++i) {
    GraphNode node = std::move(all.nodes[i]);
    if (!node.is_switch) node.id = topology.server_in_use(node.id);
    if (node.id < 0) continue;
    node_of[i] = static_cast<std::int64_t>(graph.nodes.size());
    graph.nodes.push_back(std::move(node));
  }
  for (GraphLink& link : all.links) {
    link.a = node_of[static_cast<std::size_t>(link.a)];
    link.b = node_of[static_cast<std::size_t>(link.b)];
    if (link.a >= 0 && link.b >= 0) graph.links.push_back(link);
  }
  return graph;
}

}  // namespace

Graph Topology::graph() const {
  if (num_links > kMaxLinks) {
    throw Error(Status::error(Code::kUnsupported,
                              fmt::format("topology \"{}\": its graph has {} cables (valid: up to {})", spec,
                                          num_links, kMaxLinks)));
  }
  if (!part.empty()) return part_of(*this);
  Graph graph;
  graph.nodes.reserve(static_cast<std::size_t>(num_servers() + num_switches));
  graph.links.reserve(static_cast<std::size_t>(num_links));
  const topology::FamilyEntry& entry = topology::entry_of(family);
  for (std::int64_t server = 0; server < num_servers(); ++server) {
    graph.nodes.push_back(
        {.is_switch = false, .id = server, .name = topology::server_address(*this, server)});
  }
  entry.wire(*this, graph);
  topology::apply_overrides(*this, graph);
  return graph;
}

namespace topology {

void apply_overrides(const Topology& topology, Graph& graph) {
  if (topology.overrides.empty()) return;
  std::map<std::pair<std::int64_t, Rail>, const LinkOverride*> by_nic;
  std::map<std::pair<std::string_view, std::string_view>, const LinkOverride*> by_switches;
  for (const LinkOverride& each : topology.overrides) {
    if (each.server >= 0) {
      by_nic[{each.server, each.rail}] = &each;
    } else {
      by_switches[{each.lower, each.upper}] = &each;
    }
  }
  for (GraphLink& link : graph.links) {
    const LinkOverride* found = nullptr;
    if (link.a < topology.num_servers()) {
      const auto at = by_nic.find({link.a, link.a_port});
      if (at != by_nic.end()) found = at->second;
      // An override may name either end of a cable between servers.
      if (const auto other = by_nic.find({link.b, link.b_port});
          found == nullptr && link.b < topology.num_servers() && other != by_nic.end())
        found = other->second;
    } else {
      const auto at = by_switches.find({graph.nodes[static_cast<std::size_t>(link.a)].name,
                                        graph.nodes[static_cast<std::size_t>(link.b)].name});
      if (at != by_switches.end()) found = at->second;
    }
    if (found == nullptr) continue;
    link.bandwidth_bytes_per_s = found->bandwidth_bytes_per_s;
    link.up = found->up;
  }
}

std::int64_t add_switch(const Topology& topology, Graph& graph, std::string name) {
  const auto node = static_cast<std::int64_t>(graph.nodes.size());
  graph.nodes.push_back({.is_switch = true, .id = node - topology.num_servers(), .name = std::move(name)});
  return node;
}

void add_link(Graph& graph, const Level& level, std::int64_t a, Rail a_port, std::int64_t b, Rail b_port) {
  graph.links.push_back({.a = a,
                         .b = b,
                         .a_port = a_port,
                         .b_port = b_port,
                         .bandwidth_bytes_per_s = level.bandwidth_bytes_per_s,
                         .latency_ns = level.latency_ns,
                         .up = true});
}

}  // namespace topology

}  // namespace hips
