#include "lib/comm/setup/rank_order.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "lib/cost/estimate.hpp"
#include "lib/plan/builder.hpp"

namespace hips::comm {
namespace {

/// Estimates all ranks if that is fast, because one server's program does not show what it relays for others.
cost::Cost cost_of(const Topology& topology, const PlanBuilder& builder, cost::Volume volume) {
  constexpr Rank kMostRanks = 64;
  return topology.num_ranks() <= kMostRanks ? cost::estimate_all(topology, builder, volume)
                                            : cost::estimate_server_of(topology, builder, 0, volume);
}

auto num_messages(const PlanBuilder& builder) {
  return std::ranges::count_if(builder.program(0).steps,
                               [](const Step& step) { return step.op == StepOp::kSend; });
}

}  // namespace

Result<RankOrder> make_rank_order(const Topology& topology) {
  auto ordered = plan::make_builder(topology, {.algorithm = "flat-mesh"});
  if (!ordered) return fail(ordered.error());
  const auto usual = plan::make_builder(topology, {});
  if (!usual) return fail(usual.error());
  constexpr cost::Volume kVolume{.count = 1 << 18, .element_bytes = 4};
  const cost::Cost ordered_cost = cost_of(topology, **ordered, kVolume);
  const cost::Cost usual_cost = cost_of(topology, **usual, kVolume);
  RankOrder order;
  order.cost_comparison = fmt::format(
      "{} instead of {}: for 1 MiB {} messages per rank instead of {}, {} steps instead of {}, {} bytes over "
      "the busiest link instead of {}",
      (*ordered)->shape().description, (*usual)->shape().description, num_messages(**ordered),
      num_messages(**usual), ordered_cost.num_steps, usual_cost.num_steps, ordered_cost.busiest.bytes,
      usual_cost.busiest.bytes);
  order.builder = *std::move(ordered);
  return order;
}

}  // namespace hips::comm
