#include <fmt/format.h>

#include "topology/families/family.hpp"

// Two tiers: every leaf switch joins some servers, which have one NIC each, and has one cable to every spine.
// With fewer spines than servers below a leaf the fabric is oversubscribed: leafspine:12,4,1 is 4:1.

namespace hips::topology {

namespace {

Result<Topology> make_leaf_spine(const Spec& spec) {
  const auto parts = split(spec.args, ',');
  if (parts.size() != 2 && parts.size() != 3) {
    return bad_spec(spec.text,
                    fmt::format("{} number{} \"leafspine:\" instead of two or three; write {}", parts.size(),
                                parts.size() == 1 ? " follows" : "s follow", spec.usage));
  }
  // A single leaf needs no spine: that is switch:n.
  const auto leaves = read_number(spec.text, "the number of leaf switches", parts[0], 2, kMaxRanks);
  if (!leaves) return fail(leaves.error());
  const auto below = read_number(spec.text, "the number of servers of a leaf", parts[1], 1, kMaxRanks);
  if (!below) return fail(below.error());
  if (auto servers = count_servers(spec.text, {*leaves, *below}); !servers) return fail(servers.error());
  std::int64_t spines = *below;
  if (parts.size() == 3) {
    const auto given = read_number(spec.text, "the number of spine switches", parts[2], 1, *below);
    if (!given) return fail(given.error());
    spines = *given;
  }

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
  add_level("leaf", *below);
  add_level("spine", *leaves);
  topology.num_switches = *leaves + spines;
  topology.num_links = *leaves * (*below + spines);
  topology.spec = spines == *below ? fmt::format("leafspine:{},{}", *leaves, *below)
                                   : fmt::format("leafspine:{},{},{}", *leaves, *below, spines);
  topology.name = fmt::format("Leaf-Spine({},{},{})", *leaves, *below, spines);
  return topology;
}

std::string leaf_name(std::int64_t leaf) {
  return fmt::format("leaf {}", leaf);
}

std::string leaf_spine_switch_name(const Topology& topology, std::int64_t server, Rail /*rail*/) {
  return leaf_name(server / (topology.num_whole_servers() / topology.levels.back().radix));
}

void wire_leaf_spine(const Topology& topology, Graph& graph) {
  // The uplinks have the rate of the spine level, the NICs that of the lowest level.
  const Level& nics = network_levels(topology).front();
  const Level& uplinks = topology.levels.back();
  const std::int64_t leaves = uplinks.radix;
  const std::int64_t below = topology.num_servers() / leaves;
  std::vector<std::int64_t> leaf_nodes, spine_nodes;
  for (std::int64_t i = 0; i < leaves; ++i) leaf_nodes.push_back(add_switch(topology, graph, leaf_name(i)));
  for (std::int64_t i = leaves; i < topology.num_switches; ++i)
    spine_nodes.push_back(add_switch(topology, graph, fmt::format("spine {}", i - leaves)));
  for (std::int64_t server = 0; server < topology.num_servers(); ++server)
    add_link(graph, nics, server, 0, leaf_nodes[static_cast<std::size_t>(server / below)], kNoRail);
  for (const std::int64_t leaf : leaf_nodes) {
    for (const std::int64_t spine : spine_nodes) add_link(graph, uplinks, leaf, kNoRail, spine, kNoRail);
  }
}

}  // namespace

const FamilyEntry kLeafSpineFamily = {
    .family = Family::kLeafSpine,
    .keyword = "leafspine",
    .usage = "leafspine:leaves,servers of each[,spines] (such as leafspine:4,8 or leafspine:12,4,1)",
    .example = "leafspine:4,8",
    .make = make_leaf_spine,
    .address = digit_address,
    .switch_name = leaf_spine_switch_name,
    .wire = wire_leaf_spine,
};

}  // namespace hips::topology
