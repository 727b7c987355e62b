#include "lib/plan/check/check_links.hpp"

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

/// Compares what NIC directions carry, and finds the largest fan-in.
class LoadNotes {
 public:
  LoadNotes(const Plan& plan, const CheckLayout& layout, Findings& findings)
      : plan_(plan),
        layout_(layout),
        findings_(findings),
        topology_(findings.options().topology),
        ranks_per_server_(topology_ == nullptr ? 1 : topology_->ranks_per_server),
        loads_(plan.programs.size() / static_cast<std::size_t>(ranks_per_server_)) {}

  void note() {
    for (Rank rank = 0; rank < plan_.shape.num_ranks; ++rank) count(rank);
    note_unequal_load();
    note_fan_in();
  }

 private:
  struct RailLoad {
    std::int64_t out = 0, in = 0;
  };
  struct Extreme {
    std::int64_t elements = -1;
    Rank rank = -1;
    Rail rail = kNoRail;
    const char* verb = "";
  };
  /// Messages that arrive at one NIC of one rank in one lane, stage and round.
  using Incast = std::tuple<Rail, std::int32_t, std::int32_t, std::int32_t>;

  void count(Rank rank) {
    const Program& program = plan_.programs[rank];
    // Ranks of one server share its NICs.
    std::map<Rail, RailLoad>& load = loads_[rank / ranks_per_server_];
    std::vector<Incast> arrivals;
    for (const Step& step : program.steps) {
      const std::int64_t elements = layout_.elements(step.dst);
      if (elements == 0) continue;
      if (step.op == StepOp::kSend) {
        if (step.rail != kNoRail) load[step.rail].out += elements;
        continue;
      }
      for (const Source& source : program.sources_of(step)) {
        if (source.kind != Source::Kind::kMessage) continue;
        if (source.rail != kNoRail) load[source.rail].in += elements;
        arrivals.emplace_back(source.rail, step.lane, step.stage, step.round);
      }
    }
    if (!load.empty()) num_rails_ = std::max(num_rails_, std::int64_t{load.rbegin()->first} + 1);
    std::sort(arrivals.begin(), arrivals.end());
    for (auto at = arrivals.begin(); at != arrivals.end();) {
      const auto end = std::upper_bound(at, arrivals.end(), *at);
      if (end - at > largest_fan_in_) {
        largest_fan_in_ = end - at;
        fan_in_rail_ = std::get<0>(*at);
        fan_in_place_ = {
            .rank = rank, .lane = std::get<1>(*at), .stage = std::get<2>(*at), .round = std::get<3>(*at)};
      }
      at = end;
    }
  }

  void compare(Rank rank, Rail rail, std::int64_t elements, const char* verb) {
    if (most_.elements < 0 || elements > most_.elements) most_ = {elements, rank, rail, verb};
    if (least_.elements < 0 || elements < least_.elements) least_ = {elements, rank, rail, verb};
  }

  void note_unequal_load() {
    for (Rank server = 0; server < static_cast<Rank>(loads_.size()); ++server) {
      const Rank rank = server * ranks_per_server_;
      for (const auto& [rail, load] : loads_[server]) {
        compare(rank, rail, load.out, "sends");
        compare(rank, rail, load.in, "receives");
      }
      // A NIC that other servers use and this one does not carries nothing.
      if (loads_[server].size() < static_cast<std::size_t>(num_rails_)) {
        Rail idle = 0;
        while (loads_[server].contains(idle)) ++idle;
        compare(rank, idle, 0, "sends");
      }
    }
    // Blocks that differ by the rounding of their boundaries are no imbalance.
    std::int64_t largest_block = 0;
    for (BlockIdx block = 0; block < plan_.shape.blocks.num_blocks; ++block)
      largest_block = std::max(largest_block, layout_.elements({Buffer::kOutput, {block, 1}}));
    if (most_.elements - least_.elements <=
        largest_block * static_cast<std::int64_t>(plan_.shape.lanes.size()))
      return;
    const auto share = [&](std::int64_t elements) {
      return static_cast<double>(elements) / static_cast<double>(layout_.count());
    };
    const bool relays = topology_ != nullptr && topology_->servers_relay && !plan_.shape.neighbours_only;
    findings_.add(
        FindingKind::kUnequalLoad, {.rank = most_.rank},
        fmt::format("{} of {} {} {:.4g} times the vector, {} of {} {} {:.4g} times{}", rail_text(most_.rail),
                    findings_.rank_name(most_.rank), most_.verb, share(most_.elements),
                    rail_text(least_.rail), findings_.rank_name(least_.rank), least_.verb,
                    share(least_.elements), relays ? ", relayed bytes not included" : ""));
  }

  void note_fan_in() {
    if (largest_fan_in_ < findings_.options().note_fan_in) return;
    findings_.add(
        FindingKind::kFanIn, fan_in_place_,
        fmt::format("{} messages arrive at {} of {} in lane {}, stage {}, round {}", largest_fan_in_,
                    rail_text(fan_in_rail_), findings_.rank_name(fan_in_place_.rank), fan_in_place_.lane,
                    fan_in_place_.stage, fan_in_place_.round));
  }

  const Plan& plan_;
  const CheckLayout& layout_;
  Findings& findings_;
  const Topology* topology_;
  Rank ranks_per_server_;
  std::vector<std::map<Rail, RailLoad>> loads_;  ///< by server
  std::int64_t num_rails_ = 0;
  Extreme most_, least_;
  std::int64_t largest_fan_in_ = 0;
  PlanPlace fan_in_place_;
  Rail fan_in_rail_ = kNoRail;
};

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
      const StepIdx receiver = messages.receiver_of(table.idx(rank, id));
      const Program& peer = plan.programs[step.peer];
      const std::span<const Source> sources = peer.sources_of(table.step(receiver));
      const auto source = std::find_if(sources.begin(), sources.end(), [&](const Source& candidate) {
        return candidate.kind == Source::Kind::kMessage && candidate.peer == rank;
      });
      const Hop hop{.from = rank, .to = step.peer, .out = step.rail, .in = source->rail};
      if (std::binary_search(hops.begin(), hops.end(), hop, before)) continue;
      // Servers that differ in several digits are one hop apart in a tree of switches, and so are ranks with
      // different local numbers. The route starts with the step's NIC if that leads to the peer.
      std::vector<Hop> route;
      topology::walk(topology, rank, step.peer, step.rail, [&](const Hop& each) { route.push_back(each); });
      if (route.size() == 1 && route[0].out == hop.out && route[0].in == hop.in) continue;
      if (!findings.count(FindingKind::kNoLink)) continue;
      const std::string problem =
          route.size() != 1
              ? fmt::format("the route has {} hops, and the plan claims to use neighbours only", route.size())
              : fmt::format("the link leaves by {} and arrives by {}", rail_text(route[0].out),
                            rail_text(route[0].in));
      findings.report(
          FindingKind::kNoLink, Findings::place(rank, id, step),
          fmt::format("{}, {} leaves by {} and arrives by {}, but {}", findings.rank_name(rank),
                      findings.step_name(rank, id), rail_text(step.rail), rail_text(source->rail), problem));
    }
  }
}

void note_loads(const Plan& plan, const CheckLayout& layout, Findings& findings) {
  LoadNotes(plan, layout, findings).note();
}

}  // namespace hips::plan
