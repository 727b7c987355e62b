#include <fmt/format.h>

#include "topology/families/family.hpp"

// The k-ary Fat-Tree: switches of k ports in three tiers and k^3/4 servers with one NIC each.
//
//   core          (k/2)^2 switches, one port to every pod
//   pod 0..k-1    k/2 aggregation switches, k/2 ports up and k/2 down to every edge switch of the pod
//                 k/2 edge switches, each with k/2 servers below
//
// Aggregation switch i of every pod reaches the cores i*k/2 .. i*k/2 + k/2-1. Every tier has as many cables
// up as down, so what leaves an edge switch or a pod is limited by the NICs below it.
//
// Source: Al-Fares, Loukissas, Vahdat, SIGCOMM 2008.

namespace hips::topology {

namespace {

Result<Topology> make_fat_tree(const Spec& spec) {
  const auto ports = read_number(spec.text, "k", spec.args, 2, kMaxRanks);
  if (!ports) return fail(ports.error());
  const std::int64_t k = *ports;
  if (k % 2 != 0) {
    return bad_spec(spec.text,
                    fmt::format("k is {}, which is odd; a switch has k/2 ports down and k/2 up, so write "
                                "fattree:{} or fattree:{}",
                                k, k - 1, k + 1));
  }
  const std::int64_t half = k / 2;
  if (auto servers = count_servers(spec.text, {half, half, k}); !servers) return fail(servers.error());

  Topology topology;
  topology.num_rails = 1;
  const auto add_level = [&](std::string name, std::int64_t radix) {
    if (radix == 1) return;
    Level level;
    level.name = std::move(name);
    level.radix = radix;
    level.kind = LevelKind::kTree;
    level.rails = {0};
    topology.levels.push_back(std::move(level));
  };
  add_level("edge", half);
  add_level("pod", half);
  add_level("core", k);
  topology.num_switches = k * half + k * half + half * half;  // edge, aggregation, core
  topology.num_links = 3 * k * half * half;                   // as many on every tier as servers
  topology.spec = fmt::format("fattree:{}", k);
  topology.name = fmt::format("Fat-Tree({})", k);
  return topology;
}

std::string edge_name(std::int64_t pod, std::int64_t edge) {
  return fmt::format("pod {} edge {}", pod, edge);
}

std::string fat_tree_switch_name(const Topology& topology, std::int64_t server, Rail /*rail*/) {
  const std::int64_t half = topology.levels.back().radix / 2;
  return edge_name(server / half / half, server / half % half);
}

void wire_fat_tree(const Topology& topology, Graph& graph) {
  const Level& core_level = topology.levels.back();
  const std::int64_t k = core_level.radix;
  const std::int64_t half = k / 2;
  // The cables of each tier have the rate of its level. With switches of two ports there is only the core
  // level.
  const auto levels = network_levels(topology);
  const Level& edge_level = levels.front();
  const Level& pod_level = levels[levels.size() > 1 ? 1 : 0];
  std::vector<std::int64_t> edges, aggregations, cores;
  for (std::int64_t pod = 0; pod < k; ++pod) {
    for (std::int64_t i = 0; i < half; ++i) {
      edges.push_back(add_switch(topology, graph, edge_name(pod, i)));
    }
    for (std::int64_t i = 0; i < half; ++i) {
      aggregations.push_back(add_switch(topology, graph, fmt::format("pod {} aggregation {}", pod, i)));
    }
  }
  for (std::int64_t i = 0; i < half * half; ++i) {
    cores.push_back(add_switch(topology, graph, fmt::format("core {}", i)));
  }
  const auto at = [](const std::vector<std::int64_t>& nodes, std::int64_t i) {
    return nodes[static_cast<std::size_t>(i)];
  };
  for (std::int64_t server = 0; server < topology.num_servers(); ++server) {
    add_link(graph, edge_level, server, 0, at(edges, server / half), kNoRail);
  }
  for (std::int64_t pod = 0; pod < k; ++pod) {
    for (std::int64_t aggregation = 0; aggregation < half; ++aggregation) {
      const std::int64_t node = at(aggregations, pod * half + aggregation);
      for (std::int64_t i = 0; i < half; ++i) {
        add_link(graph, pod_level, at(edges, pod * half + i), kNoRail, node, kNoRail);
        add_link(graph, core_level, node, kNoRail, at(cores, aggregation * half + i), kNoRail);
      }
    }
  }
}

}  // namespace

const FamilyEntry kFatTreeFamily = {
    .family = Family::kFatTree,
    .keyword = "fattree",
    .usage = "fattree:k with k even (such as fattree:4)",
    .example = "fattree:4",
    .make = make_fat_tree,
    .address = digit_address,
    .switch_name = fat_tree_switch_name,
    .wire = wire_fat_tree,
};

}  // namespace hips::topology
