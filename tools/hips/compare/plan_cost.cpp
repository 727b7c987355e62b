#include "tools/hips/compare/plan_cost.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "lib/cost/estimate.hpp"
#include "lib/cost/fan_in.hpp"
#include "lib/cost/select.hpp"
#include "lib/plan/builder.hpp"
#include "tools/hips/compare/closed_form.hpp"
#include "tools/hips/compare/size_range.hpp"
#include "topology/families/family.hpp"
#include "topology/tiers.hpp"
#include "topology/walk.hpp"

namespace hips::compare {
namespace {

/// The messages of the rank that sends most, from the shape alone.
std::int64_t messages_of_one(const Topology& topology, const PlanShape& shape) {
  std::int64_t messages = 0;
  for (const LaneInfo& lane : shape.lanes) {
    for (const StageInfo& stage : lane.stages) {
      // A level of halving and doubling consists of pairs.
      std::int64_t peers = stage.num_leaders - 1;
      if (stage.pattern == Pattern::kPs && stage.phase == Phase::kGather) {
        if (shape.algorithm == "flat-ps") peers = shape.num_ranks - 1;
        if (stage.level >= 0) peers = topology.levels[static_cast<std::size_t>(stage.level)].radix - 1;
      }
      messages += peers;
    }
  }
  return messages;
}

/// Why three servers do not determine the busiest link: others relay, lead or reduce more, or switches are
/// busier.
/// "" if they do.
std::string why_all_servers(const Topology& topology, const PlanShape& shape) {
  if (topology.servers_relay && !shape.neighbours_only) return "servers relay its messages";
  if (!topology.overrides.empty()) return "links differ";
  const auto uses_leaders = [](const LaneInfo& lane) {
    return std::ranges::any_of(lane.stages,
                               [](const StageInfo& stage) { return stage.pattern == Pattern::kPs; });
  };
  // With one rank per server, the second rank represents those into which halving and doubling reduce others.
  const bool pairs_up = shape.algorithm == "recursive-doubling" || shape.algorithm == "halving-doubling";
  // The members of a group are on different numbers of servers and NICs.
  if (shape.algorithm == "recursive-multiplying") return "servers differ";
  if (std::ranges::any_of(shape.lanes, uses_leaders) && (!pairs_up || topology.ranks_per_server > 1))
    return "servers differ";
  if (topology.family == Family::kGraph) return "servers differ";
  const auto nics = topology::rail_bandwidths(topology);
  for (const topology::Tier& tier : topology::tiers(topology)) {
    if (tier.bandwidth_bytes_per_s < static_cast<double>(tier.servers_below) * nics.front())
      return fmt::format("{} are oversubscribed", tier.name);
  }
  return {};
}

double hop_seconds(const Topology& topology) {
  double latency_ns = 0;
  for (const Level& level : topology.levels) latency_ns = std::max(latency_ns, level.latency_ns);
  return latency_ns * 1e-9;
}

/// Counts the messages, hops and fan-in of programs, one program at a time.
class ProgramCounter {
 public:
  ProgramCounter(const Topology& topology, const PlanShape& shape) : topology_(topology), shape_(shape) {}

  void add(const Program& program) {
    std::int64_t sent = 0;
    for (const Step& step : program.steps) {
      if (step.op != StepOp::kSend) continue;
      ++sent;
      if (shape_.neighbours_only) continue;
      std::int64_t hops = 0;
      topology::walk(topology_, program.rank, step.peer, step.rail, [&](const Hop&) { ++hops; });
      if (hops < 2) continue;
      std::int64_t& most = relays_[{step.stage, step.round}];
      most = std::max(most, hops - 1);
    }
    num_messages_ = std::max(num_messages_, sent);
    fan_in_ = std::max(fan_in_, cost::fan_in(program));
  }

  void write(PlanCost& plan) const {
    plan.num_messages = num_messages_;
    plan.fan_in = fan_in_;
    // Rounds are sequential, each with its longest route.
    plan.num_hops = plan.num_steps;
    for (const auto& [round, more] : relays_) plan.num_hops += more;
    plan.relays = plan.num_hops > plan.num_steps;
  }

 private:
  const Topology& topology_;
  const PlanShape& shape_;
  std::int64_t num_messages_ = 0, fan_in_ = 0;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> relays_;
};

/// Adds the cost of each size to a plan, from the load of the busiest link.
class CostWriter {
 public:
  CostWriter(const Topology& topology, PlanCost& plan)
      : topology_(topology), plan_(plan), bound_(cost::bound(topology)) {}

  void add(std::uint64_t bytes, double busiest_bytes, double busiest_seconds) {
    SizeCost cost;
    cost.bytes = bytes;
    cost.busiest_bytes = std::llround(busiest_bytes);
    cost.bandwidth_seconds = busiest_seconds;
    cost.latency_seconds = static_cast<double>(plan_.num_hops) * hop_seconds(topology_);
    cost.seconds = cost::expected_seconds(cost::Medium::kWires, {.latency_seconds = cost.latency_seconds,
                                                                 .bandwidth_seconds = cost.bandwidth_seconds,
                                                                 .num_messages = plan_.num_messages,
                                                                 .has_incast = plan_.fan_in > 1});
    const double least = bound_.seconds(static_cast<double>(bytes));
    cost.of_bound = cost.seconds > 0 ? least / cost.seconds : 1;
    plan_.bandwidth_of_bound = busiest_seconds > 0 ? least / busiest_seconds : 1;
    plan_.sizes.push_back(cost);
  }

 private:
  const Topology& topology_;
  PlanCost& plan_;
  cost::Bound bound_;
};

cost::Volume volume_of(std::uint64_t bytes) {
  return {.count = static_cast<std::int64_t>(bytes) / kElementBytes, .element_bytes = kElementBytes};
}

/// The servers whose programs are counted: all, or three. The second is one of them because doubling and
/// halving load the second rank most if the number of ranks is no power of two.
std::vector<std::int64_t> counted_servers(const Topology& topology, bool all) {
  std::vector<std::int64_t> servers;
  if (all) {
    for (std::int64_t server = 0; server < topology.num_servers(); ++server) servers.push_back(server);
    return servers;
  }
  const std::set<std::int64_t> some{0, std::min(1, topology.num_servers() - 1), topology.num_servers() - 1};
  return {some.begin(), some.end()};
}

void count_programs(const Topology& topology, const PlanBuilder& builder, std::int64_t steps_of_one,
                    std::span<const std::uint64_t> sizes, std::int64_t most_counted_steps, PlanCost& plan) {
  const PlanShape& shape = builder.shape();
  const bool all = plan.basis == Basis::kAllServers;
  const auto servers = counted_servers(topology, all);
  const std::int64_t local = topology.ranks_per_server;
  const auto steps = steps_of_one * local * static_cast<std::int64_t>(servers.size());
  plan.scaled = steps * static_cast<std::int64_t>(sizes.size()) > most_counted_steps;
  const auto counted = plan.scaled ? sizes.last(1) : sizes;

  // For all servers there is one counter per size; for some servers one per server and size.
  std::vector<cost::LinkLoad> busiest(counted.size());
  ProgramCounter programs(topology, shape);
  std::vector<cost::LoadCounter> counters;
  const auto start = [&](auto... server) {
    counters.clear();
    for (const std::uint64_t bytes : counted)
      counters.emplace_back(topology, shape, volume_of(bytes), server...);
  };
  const auto finish = [&] {
    for (std::size_t i = 0; i < counted.size(); ++i) {
      const auto link =
          cost::estimate_loads(topology, shape, counters[i].take(), volume_of(counted[i])).busiest;
      if (busiest[i].name.empty() || link.seconds > busiest[i].seconds) busiest[i] = link;
    }
  };
  if (all) start();
  for (const std::int64_t server : servers) {
    if (!all) start(server);
    for (std::int64_t i = 0; i < local; ++i) {
      const Program program = builder.program(static_cast<Rank>(server * local + i));
      programs.add(program);
      for (cost::LoadCounter& counter : counters) counter.add(program);
    }
    if (!all) finish();
  }
  if (all) finish();

  programs.write(plan);
  plan.busiest = busiest.back().name;
  CostWriter writer(topology, plan);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const cost::LinkLoad& link = busiest[plan.scaled ? 0 : i];
    const double share =
        plan.scaled ? static_cast<double>(sizes[i]) / static_cast<double>(counted.front()) : 1;
    writer.add(sizes[i], share * static_cast<double>(link.bytes), share * link.seconds);
  }
}

void use_closed_form(const Topology& topology, const PlanShape& shape, const ClosedForm& form,
                     std::span<const std::uint64_t> sizes, PlanCost& plan) {
  plan.basis = Basis::kClosedForm;
  plan.num_messages = form.num_messages > 0 ? form.num_messages : messages_of_one(topology, shape);
  plan.fan_in = form.fan_in;
  plan.num_hops = plan.num_steps * (shape.neighbours_only ? 1 : topology::diameter_hops(topology));
  plan.relays = plan.num_hops > plan.num_steps;
  plan.busiest = form.busiest;
  CostWriter writer(topology, plan);
  for (const std::uint64_t bytes : sizes) {
    const auto size = static_cast<double>(bytes);
    writer.add(bytes, form.busiest_share * size, form.seconds_per_byte * size);
  }
}

}  // namespace

const char* to_string(Basis basis) {
  switch (basis) {
    case Basis::kNone:
      return "";
    case Basis::kAllServers:
      return "all servers";
    case Basis::kSomeServers:
      return "some servers";
    case Basis::kClosedForm:
      return "closed form";
  }
  return "";
}

PlanCost estimate_plan(const Entry& entry, std::span<const std::uint64_t> sizes,
                       const CountingLimits& limits) {
  PlanCost plan;
  plan.entry = entry;
  const Topology topology = parse_topology(entry.wiring);
  const auto made = plan::make_builder(topology, entry.request);
  if (!made) {
    plan.reason = made.error().message;
    return plan;
  }
  const PlanBuilder& builder = **made;
  const PlanShape& shape = builder.shape();
  plan.description = shape.description;
  plan.num_steps = shape.num_steps;

  const auto instead = [&](const std::string& why) {
    const auto form =
        topology.overrides.empty() && topology.family != Family::kGraph && !topology::has_lines(topology)
            ? closed_form(topology, shape, entry.request)
            : std::nullopt;
    if (form) {
      use_closed_form(topology, shape, *form, sizes, plan);
    } else {
      plan.reason = why;
    }
    return plan;
  };
  if (const std::int64_t messages = messages_of_one(topology, shape); messages > limits.messages) {
    return instead(fmt::format("a rank sends {} messages, more than {}, and there is no closed form",
                               messages, limits.messages));
  }
  std::int64_t steps = 0;
  for (const std::int64_t server : counted_servers(topology, false)) {
    const Program program = builder.program(static_cast<Rank>(server * topology.ranks_per_server));
    steps = std::max(steps, static_cast<std::int64_t>(program.steps.size()));
  }
  if (steps * topology.num_ranks() <= limits.steps) {
    plan.basis = Basis::kAllServers;
  } else if (const std::string why = why_all_servers(topology, shape); !why.empty()) {
    return instead(
        fmt::format("{}, so that the programs of all {} ranks would be needed", why, topology.num_ranks()));
  } else {
    plan.basis = Basis::kSomeServers;
  }
  count_programs(topology, builder, steps, sizes, limits.counted_steps, plan);
  return plan;
}

Comparison compare(const Topology& topology, std::span<const Entry> entries,
                   std::vector<std::uint64_t> sizes) {
  Comparison comparison;
  comparison.topology = topology;
  comparison.bound = cost::bound(topology);
  comparison.sizes = std::move(sizes);
  for (const Entry& entry : entries) comparison.plans.push_back(estimate_plan(entry, comparison.sizes));
  for (std::size_t i = 0; i < comparison.sizes.size(); ++i) {
    std::size_t best = comparison.plans.size();
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t p = 0; p < comparison.plans.size(); ++p) {
      const PlanCost& plan = comparison.plans[p];
      if (plan.basis == Basis::kNone || plan.relays || plan.entry.baseline || plan.sizes[i].seconds >= least)
        continue;
      least = plan.sizes[i].seconds;
      best = p;
    }
    comparison.best.push_back(best);
  }
  // The selection estimates about thirty sizes, which takes too long for one level of a million servers.
  const auto usual = plan::make_builder(topology, {});
  if (usual && messages_of_one(topology, (*usual)->shape()) <= CountingLimits{}.messages) {
    if (const auto selection = cost::select(topology, cost::Medium::kWires)) {
      for (const auto& choice : selection->choices)
        comparison.selected.push_back({selection->candidates[choice.candidate].name, choice.up_to_bytes});
    }
  }
  return comparison;
}

}  // namespace hips::compare
