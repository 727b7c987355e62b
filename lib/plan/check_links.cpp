#include "lib/plan/check_links.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "topology/walk.hpp"

namespace hips::plan {
namespace {

std::string rail_text(Rail rail) {
  return rail == kNoRail ? "no NIC" : fmt::format("NIC {}", rail);
}

}  // namespace

void check_links(const Plan& plan, const StepTable& table, const Messages& messages, const Topology& topology,
                 Findings& findings) {
  const auto before = [](const Hop& a, const Hop& b) {
    return std::tie(a.to, a.out, a.in) < std::tie(b.to, b.out, b.in);
  };
  for (Rank rank = 0; rank < plan.shape.num_ranks; ++rank) {
    std::vector<Hop> hops = topology.neighbours(rank);
    std::sort(hops.begin(), hops.end(), before);
    const std::vector<Step>& steps = plan.programs[rank].steps;
    for (StepId id = 0; id < static_cast<StepId>(steps.size()); ++id) {
      const Step& step = steps[id];
      if (step.op != StepOp::kSend) continue;
      const StepIdx taker = messages.receiver_of(table.idx(rank, id));
      const Program& peer = plan.programs[step.peer];
      const std::span<const Source> sources = peer.sources_of(table.step(taker));
      const auto source = std::find_if(sources.begin(), sources.end(), [&](const Source& candidate) {
        return candidate.kind == Source::Kind::kMessage && candidate.peer == rank;
      });
      const Hop hop{.from = rank, .to = step.peer, .out = step.rail, .in = source->rail};
      if (std::binary_search(hops.begin(), hops.end(), hop, before)) continue;
      // Servers that differ in several digits are one hop apart where a switch tree joins them, and so are
      // ranks with different local numbers; by the NIC that the step names, where that leads there.
      std::vector<Hop> route;
      topology::walk(topology, rank, step.peer, step.rail, [&](const Hop& each) { route.push_back(each); });
      if (route.size() == 1 && route[0].out == hop.out && route[0].in == hop.in) continue;
      if (!findings.count(FindingKind::kNoLink)) continue;
      const std::string lack =
          route.size() != 1
              ? fmt::format("the way there has {} hops, and the plan says that it talks to neighbours only",
                            route.size())
              : fmt::format("the link leaves by {} and arrives by {}", rail_text(route[0].out),
                            rail_text(route[0].in));
      findings.tell(
          FindingKind::kNoLink, Findings::place(rank, id, step),
          fmt::format("{}, {} leaves by {} and arrives by {}, but {}", findings.rank_name(rank),
                      findings.step_name(rank, id), rail_text(step.rail), rail_text(source->rail), lack));
    }
  }
}

void note_loads(const Plan& plan, const CheckLayout& layout, Findings& findings) {
  struct Load {
    std::int64_t out = 0, in = 0;
  };
  struct Extreme {
    std::int64_t elements = -1;
    Rank rank = -1;
    Rail rail = kNoRail;
    const char* verb = "";
  };
  /// Messages that meet: at one NIC of one rank, in one lane, stage and round.
  using Meeting = std::tuple<Rail, std::int32_t, std::int32_t, std::int32_t>;

  Extreme most, least;
  const auto see = [&](Rank rank, Rail rail, std::int64_t elements, const char* verb) {
    if (most.elements < 0 || elements > most.elements) most = {elements, rank, rail, verb};
    if (least.elements < 0 || elements < least.elements) least = {elements, rank, rail, verb};
  };
  std::int64_t largest_fan_in = 0;
  Place fan_in_place;
  Rail fan_in_rail = kNoRail;
  std::int64_t num_rails = 0;
  // Ranks of one server share its NICs.
  const Topology* topology = findings.options().topology;
  const Rank per_server = topology == nullptr ? 1 : topology->ranks_per_server;
  std::vector<std::map<Rail, Load>> loads(plan.programs.size() / static_cast<std::size_t>(per_server));
  std::vector<Meeting> meetings;
  for (Rank rank = 0; rank < plan.shape.num_ranks; ++rank) {
    const Program& program = plan.programs[rank];
    std::map<Rail, Load>& load = loads[rank / per_server];
    meetings.clear();
    for (const Step& step : program.steps) {
      const std::int64_t elements = layout.elements(step.dst);
      if (elements == 0) continue;
      if (step.op == StepOp::kSend) {
        if (step.rail != kNoRail) load[step.rail].out += elements;
        continue;
      }
      for (const Source& source : program.sources_of(step)) {
        if (source.kind != Source::Kind::kMessage) continue;
        if (source.rail != kNoRail) load[source.rail].in += elements;
        meetings.emplace_back(source.rail, step.lane, step.stage, step.round);
      }
    }
    if (!load.empty()) num_rails = std::max(num_rails, std::int64_t{load.rbegin()->first} + 1);
    std::sort(meetings.begin(), meetings.end());
    for (std::size_t i = 0; i < meetings.size();) {
      const auto end =
          std::upper_bound(meetings.begin() + static_cast<std::ptrdiff_t>(i), meetings.end(), meetings[i]) -
          meetings.begin();
      if (end - static_cast<std::ptrdiff_t>(i) > largest_fan_in) {
        largest_fan_in = end - static_cast<std::ptrdiff_t>(i);
        fan_in_rail = std::get<0>(meetings[i]);
        fan_in_place = {.rank = rank,
                        .lane = std::get<1>(meetings[i]),
                        .stage = std::get<2>(meetings[i]),
                        .round = std::get<3>(meetings[i])};
      }
      i = static_cast<std::size_t>(end);
    }
  }

  for (Rank server = 0; server < static_cast<Rank>(loads.size()); ++server) {
    for (const auto& [rail, load] : loads[server]) {
      see(server * per_server, rail, load.out, "sends");
      see(server * per_server, rail, load.in, "receives");
    }
    // A NIC that others use and this server does not carries nothing.
    if (loads[server].size() < static_cast<std::size_t>(num_rails)) {
      Rail idle = 0;
      while (loads[server].contains(idle)) ++idle;
      see(server * per_server, idle, 0, "sends");
    }
  }
  // Blocks that differ by the rounding of their bounds make no imbalance.
  std::int64_t largest_block = 0;
  for (BlockIdx block = 0; block < plan.shape.blocks.num_blocks; ++block) {
    largest_block = std::max(largest_block, layout.elements({Buffer::kOutput, {block, 1}}));
  }
  const auto share = [&](std::int64_t elements) {
    return static_cast<double>(elements) / static_cast<double>(layout.count());
  };
  if (most.elements - least.elements > largest_block * static_cast<std::int64_t>(plan.shape.lanes.size())) {
    const bool relays = topology != nullptr && topology->servers_relay && !plan.shape.neighbours_only;
    findings.add(
        FindingKind::kUnequalLoad, {.rank = most.rank},
        fmt::format("{} of {} {} {:.4g} times the vector, {} of {} {} {:.4g} times{}", rail_text(most.rail),
                    findings.rank_name(most.rank), most.verb, share(most.elements), rail_text(least.rail),
                    findings.rank_name(least.rank), least.verb, share(least.elements),
                    relays ? ", what is relayed for others not counted" : ""));
  }
  if (largest_fan_in >= findings.options().note_fan_in) {
    findings.add(FindingKind::kFanIn, fan_in_place,
                 fmt::format("{} messages meet at {} of {} in lane {}, stage {}, round {}", largest_fan_in,
                             rail_text(fan_in_rail), findings.rank_name(fan_in_place.rank), fan_in_place.lane,
                             fan_in_place.stage, fan_in_place.round));
  }
}

}  // namespace hips::plan
