#include "lib/comm/setup/hosts.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "lib/comm/node_communicator.hpp"
#include "lib/cost/select.hpp"
#include "topology/formats/parse.hpp"

namespace hips::comm {
namespace {

/// Ranks by host, where the topology says which those are: m of one server after the other.
std::vector<std::vector<Rank>> by_server(const Topology& topology) {
  std::vector<std::vector<Rank>> groups(static_cast<std::size_t>(topology.num_servers()));
  for (Rank rank = 0; rank < topology.num_ranks(); ++rank)
    groups[static_cast<std::size_t>(rank / topology.ranks_per_server)].push_back(rank);
  return groups;
}

std::vector<std::vector<Rank>> by_memory(const std::vector<ProcessInfo>& processes) {
  std::vector<std::vector<Rank>> groups;
  std::map<std::string_view, std::size_t> known;
  for (std::size_t r = 0; r < processes.size(); ++r) {
    const auto [at, is_new] = known.emplace(processes[r].host_key, groups.size());
    if (is_new) groups.emplace_back();
    groups[at->second].push_back(static_cast<Rank>(r));
  }
  return groups;
}

/// A host's program as that of one of its ranks, whose peers are the ranks of the same number elsewhere.
Program of_ranks(Program program, const Hosts& hosts) {
  program.rank = hosts.rank_of(program.rank, hosts.local);
  for (Step& step : program.steps)
    if (step.peer >= 0) step.peer = hosts.rank_of(step.peer, hosts.local);
  for (Source& source : program.sources)
    if (source.peer >= 0) source.peer = hosts.rank_of(source.peer, hosts.local);
  return program;
}

}  // namespace

std::optional<Hosts> Hosts::of(const Design& design, const Config& config,
                               const std::vector<ProcessInfo>& processes, Rank rank) {
  const bool all_named =
      !design.choices.empty() && std::ranges::none_of(design.choices, &Design::Choice::automatic);
  if (all_named || config.transport != "auto") return std::nullopt;
  const bool servers = design.topology.ranks_per_server > 1;
  // Who names a topology without ranks inside its servers says that each rank is one.
  if (!servers && design.topology_named) return std::nullopt;
  const auto groups = servers ? by_server(design.topology) : by_memory(processes);
  Hosts hosts;
  hosts.num_hosts = static_cast<Rank>(groups.size());
  hosts.per_host = static_cast<Rank>(groups.front().size());
  if (hosts.num_hosts < 2 || hosts.per_host < 2 || hosts.per_host > NodeCommunicator::kMostRanks)
    return std::nullopt;
  for (std::size_t h = 0; h < groups.size(); ++h) {
    if (groups[h].size() != groups.front().size()) return std::nullopt;
    const auto& first = processes[static_cast<std::size_t>(groups[h].front())];
    for (std::size_t number = 0; number < groups[h].size(); ++number) {
      const Rank member = groups[h][number];
      if (processes[static_cast<std::size_t>(member)].host_key != first.host_key) return std::nullopt;
      hosts.ranks.push_back(member);
      if (member != rank) continue;
      hosts.host = static_cast<Rank>(h);
      hosts.local = static_cast<Rank>(number);
    }
  }
  return hosts;
}

Topology topology_of_hosts(const Design& design, const Hosts& hosts) {
  if (design.topology.ranks_per_server > 1) return topology::without_node_level(design.topology);
  return parse_topology(fmt::format("switch:{}", hosts.num_hosts));
}

Result<std::vector<Design::Choice>> choose_plans_between(const Topology& wiring, const Hosts& hosts,
                                                         cost::Medium medium) {
  auto selection = cost::select(wiring, medium);
  if (!selection) return fail(selection.error());
  std::vector<Design::Choice> choices;
  for (const auto& choice : selection->choices) {
    const PlanBuilder& builder = selection->builder(choice);
    choices.push_back({.shape = std::make_shared<PlanShape>(builder.shape()),
                       .program = std::make_shared<Program>(of_ranks(builder.program(hosts.host), hosts)),
                       .up_to_bytes = choice.up_to_bytes});
  }
  return choices;
}

}  // namespace hips::comm
