#include "lib/comm/setup/node_groups.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "lib/comm/shared_memory_backend.hpp"
#include "lib/cost/constants.hpp"
#include "lib/cost/select.hpp"
#include "topology/formats/parse.hpp"

namespace hips::comm {
namespace {

/// The ranks of each server of the topology: server s has ranks s*m to s*m + m-1.
std::vector<std::vector<Rank>> by_server(const Topology& topology) {
  std::vector<std::vector<Rank>> groups(static_cast<std::size_t>(topology.num_servers()));
  for (Rank rank = 0; rank < topology.num_ranks(); ++rank)
    groups[static_cast<std::size_t>(rank / topology.ranks_per_server)].push_back(rank);
  return groups;
}

/// The ranks of each node, in the order of their lowest ranks.
std::vector<std::vector<Rank>> by_node(const std::vector<ProcessInfo>& processes) {
  std::vector<std::vector<Rank>> groups;
  std::map<std::string_view, std::size_t> known;
  for (std::size_t r = 0; r < processes.size(); ++r) {
    const auto [at, is_new] = known.emplace(processes[r].node_key, groups.size());
    if (is_new) groups.emplace_back();
    groups[at->second].push_back(static_cast<Rank>(r));
  }
  return groups;
}

/// Turns the program of a node into that of one of its ranks. `ranks`: by node, those of the same local rank.
Program of_ranks(Program program, const std::vector<Rank>& ranks) {
  const auto rename = [&](Rank& node) {
    if (node >= 0) node = ranks[static_cast<std::size_t>(node)];
  };
  rename(program.rank);
  for (Step& step : program.steps) rename(step.peer);
  for (Source& source : program.sources) rename(source.peer);
  return program;
}

/// What a second step in the memory of a node takes.
constexpr double kStepSeconds = 2.5e-6;
/// What a message through sockets costs hardly depends on its bytes up to this size.
constexpr std::uint64_t kShortMessageBytes = 4U << 10U;
/// To reduce this much more, in all, costs a rank as much as the second step.
constexpr std::uint64_t kMostMoreBytes = 32U << 10U;

std::uint64_t whole_up_to_bytes(const Topology& wiring, const cost::Selection& selection,
                                Rank ranks_per_node) {
  const auto m = static_cast<std::uint64_t>(ranks_per_node);
  const auto seconds = [&](std::uint64_t bytes) {
    return cost::expected_seconds(wiring, selection.medium, selection.of(bytes), bytes);
  };
  std::uint64_t whole = 0;
  for (std::uint64_t bytes = sizeof(float); (m - 1) * bytes <= kMostMoreBytes; bytes *= 2) {
    if (seconds(m * bytes) - seconds(bytes) > kStepSeconds) break;
    whole = bytes;
  }
  return whole;
}

}  // namespace

std::optional<NodeGroups> NodeGroups::of(const Design& design, const Config& config,
                                         const std::vector<ProcessInfo>& processes, Rank rank) {
  const bool all_named =
      !design.choices.empty() && std::ranges::none_of(design.choices, &Design::Choice::automatic);
  if (all_named || config.transport != "auto") return std::nullopt;
  const bool servers = design.topology.ranks_per_server > 1;
  // In a named topology with one rank per server, each rank is a server of its own.
  if (!servers && design.topology_named) return std::nullopt;
  const auto groups = servers ? by_server(design.topology) : by_node(processes);
  NodeGroups nodes;
  nodes.num_nodes = static_cast<Rank>(groups.size());
  const auto [least, most] = std::ranges::minmax(groups, {}, &std::vector<Rank>::size);
  nodes.least_ = static_cast<Rank>(least.size());
  nodes.most_ = static_cast<Rank>(most.size());
  if (nodes.num_nodes < 2 || nodes.most_ < 2 || nodes.most_ > SharedMemoryBackend::kMostRanks)
    return std::nullopt;
  nodes.first.push_back(0);
  for (std::size_t h = 0; h < groups.size(); ++h) {
    nodes.first.push_back(nodes.first.back() + static_cast<Rank>(groups[h].size()));
    const auto& first = processes[static_cast<std::size_t>(groups[h].front())];
    for (std::size_t number = 0; number < groups[h].size(); ++number) {
      const Rank member = groups[h][number];
      if (processes[static_cast<std::size_t>(member)].node_key != first.node_key) return std::nullopt;
      nodes.ranks.push_back(member);
      if (member != rank) continue;
      nodes.node = static_cast<Rank>(h);
      nodes.local_rank = static_cast<Rank>(number);
    }
  }
  return nodes;
}

Topology topology_of_nodes(const Design& design, const NodeGroups& nodes) {
  if (design.wiring) return design.wiring->nodes;
  if (design.topology.ranks_per_server > 1) return topology::without_node_level(design.topology);
  return parse_topology(fmt::format("switch:{}", nodes.num_nodes));
}

Result<PlansBetween> choose_plans_between(const Topology& wiring, const NodeGroups& nodes,
                                          cost::Medium medium,
                                          const std::optional<cost::Constants>& network) {
  auto selection = network ? cost::select(wiring, medium, *network) : cost::select(wiring, medium);
  if (!selection) return fail(selection.error());
  PlansBetween between;
  if (medium.message_seconds >= cost::kSocketMessageSeconds) {
    // Ranks share the kernel's sockets and the cores, where each message costs more than the leader's reduction for the others.
    const auto others = static_cast<std::uint64_t>(nodes.most_ranks() - 1);
    between.one_leader_up_to_bytes = std::min(kShortMessageBytes, kMostMoreBytes / others);
  } else if (nodes.least_ranks() == nodes.most_ranks()) {
    // Each rank drives RDMA by itself; on nodes with different numbers of ranks some have no counterpart to send to.
    between.whole_up_to_bytes = whole_up_to_bytes(network ? cost::with_constants(wiring, *network) : wiring,
                                                  *selection, nodes.least_ranks());
  }
  // Empty where not all nodes have a rank of this local rank, which then takes part in no plan.
  std::vector<Rank> counterparts;
  if (nodes.local_rank < nodes.least_ranks())
    for (Rank node = 0; node < nodes.num_nodes; ++node)
      counterparts.push_back(nodes.rank_of(node, nodes.local_rank));
  std::vector<std::shared_ptr<const PlanBuilder>> builders;
  for (auto& candidate : selection->candidates) builders.push_back(std::move(candidate.builder));
  for (const auto& choice : selection->choices) {
    const auto& builder = builders[choice.candidate];
    const auto program = [builder, counterparts, node = nodes.node,
                          rank = nodes.rank_of(nodes.node, nodes.local_rank)] {
      Program none;
      none.rank = rank;
      return counterparts.empty() ? none : of_ranks(builder->program(node), counterparts);
    };
    between.choices.push_back({.shape = std::make_shared<PlanShape>(builder->shape()),
                               .program = program,
                               .up_to_bytes = choice.up_to_bytes});
  }
  return between;
}

}  // namespace hips::comm
