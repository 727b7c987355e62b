#include <fmt/format.h>
#include <fmt/ranges.h>

#include "topology/families/family.hpp"

// BCube(n,k), server-centric: n^(k+1) servers, k+1 levels, and at each level a switch for every group of
// servers that differ in that level's digit only. NIC l of a server leads to its level-l switch.
//
//   BCube(2,1)     level 1:   switch 0     switch 1        <a_1 a_0>
//                             |      \     /     |
//                          <00> <10>     <01> <11>
//                  level 0: <00>+<01> on switch 0, <10>+<11> on switch 1
//
// Source: Guo et al., BCube, SIGCOMM 2009.

namespace hips::topology {

namespace {

/// "n,k": the papers' convention, with k+1 levels of radix n.
Result<std::vector<std::int64_t>> read_uniform(const Spec& spec) {
  const auto parts = split(spec.args, ',');
  if (parts.size() != 2) {
    return bad_spec(spec.text, fmt::format("{} numbers follow \"bcube:\" instead of two; write {}",
                                           parts.size(), spec.usage));
  }
  const auto radix = read_number(spec.text, "n", parts[0], 2, kMaxRanks);
  if (!radix) return fail(radix.error());
  // 2^31 servers are too many already: no valid spec has more than 30 levels.
  const auto top = read_number(spec.text, "k", parts[1], 0, 29);
  if (!top) return fail(top.error());
  return std::vector<std::int64_t>(static_cast<std::size_t>(*top) + 1, *radix);
}

Result<Topology> make_bcube(const Spec& spec) {
  const bool comma = spec.args.find(',') != std::string_view::npos;
  const bool cross = spec.args.find('x') != std::string_view::npos;
  if (comma && cross) {
    return bad_spec(spec.text,
                    fmt::format("{} mixes \",\" and \"x\"; write {}", in_quotes(spec.args), spec.usage));
  }
  if (!comma && !cross) {
    return bad_spec(spec.text,
                    fmt::format("k is missing after {}; write {}", in_quotes(spec.args), spec.usage));
  }
  const auto radices = comma ? read_uniform(spec) : read_radices(spec, "radix");
  if (!radices) return fail(radices.error());
  const auto servers = count_servers(spec.text, *radices);
  if (!servers) return fail(servers.error());

  Topology topology;
  topology.servers_relay = true;
  topology.num_rails = static_cast<Rail>(radices->size());
  bool uniform = true;
  for (std::size_t l = 0; l < radices->size(); ++l) {
    Level level;
    level.name = fmt::format("level {}", l);
    level.radix = (*radices)[l];
    level.kind = LevelKind::kSwitch;
    level.rails = {static_cast<Rail>(l)};
    topology.levels.push_back(std::move(level));
    topology.num_switches += *servers / (*radices)[l];
    topology.num_links += *servers;
    uniform = uniform && (*radices)[l] == radices->front();
  }
  const std::string shape = uniform ? fmt::format("{},{}", radices->front(), radices->size() - 1)
                                    : fmt::format("{}", fmt::join(*radices, "x"));
  topology.spec = "bcube:" + shape;
  topology.name = fmt::format("BCube({})", shape);
  return topology;
}

std::string group_name(const Level& level, std::int64_t group) {
  return fmt::format("{} switch {}", level.name, group);
}

/// The number of a server's group at a level: its own number without the digit of that level.
std::int64_t group_of(std::int64_t server, std::int64_t stride, std::int64_t radix) {
  return server % stride + server / (stride * radix) * stride;
}

std::string bcube_switch_name(const Topology& topology, std::int64_t server, Rail rail) {
  const auto levels = network_levels(topology);
  std::int64_t stride = 1;
  for (Rail l = 0; l < rail; ++l) stride *= levels[static_cast<std::size_t>(l)].radix;
  const Level& level = levels[static_cast<std::size_t>(rail)];
  return group_name(level, group_of(server, stride, level.radix));
}

void wire_bcube(const Topology& topology, Graph& graph) {
  const std::int64_t servers = topology.num_servers();
  std::int64_t stride = 1;
  for (const Level& level : network_levels(topology)) {
    const auto first_switch = static_cast<std::int64_t>(graph.nodes.size());
    for (std::int64_t group = 0; group < servers / level.radix; ++group) {
      add_switch(topology, graph, group_name(level, group));
    }
    for (std::int64_t server = 0; server < servers; ++server) {
      const std::int64_t group = group_of(server, stride, level.radix);
      add_link(graph, level, server, level.rails.front(), first_switch + group, kNoRail);
    }
    stride *= level.radix;
  }
}

}  // namespace

const FamilyEntry kBCubeFamily = {
    .family = Family::kBCube,
    .keyword = "bcube",
    .usage = "bcube:n,k (such as bcube:3,1) or bcube:AxBxC (such as bcube:2x4x3, level 0 first)",
    .example = "bcube:3,1",
    .make = make_bcube,
    .address = digit_address,
    .switch_name = bcube_switch_name,
    .wire = wire_bcube,
};

}  // namespace hips::topology
