#include "lib/comm/setup/rank_order.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "lib/cost/estimate.hpp"
#include "lib/plan/builder.hpp"

namespace hips::comm {
namespace {

/// Of all ranks where that is quick, because one server's program does not show what others relay through it.
cost::Cost price(const Topology& topology, const PlanBuilder& builder, cost::Volume volume) {
  constexpr Rank kQuick = 64;
  return topology.num_ranks() <= kQuick ? cost::estimate_all(topology, builder, volume)
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
  const cost::Cost mine = price(topology, **ordered, kVolume), theirs = price(topology, **usual, kVolume);
  RankOrder order;
  order.price = fmt::format(
      "{} instead of {}: for 1 MiB {} messages a rank instead of {}, {} steps instead of {}, {} bytes over "
      "the busiest link instead of {}",
      (*ordered)->shape().description, (*usual)->shape().description, num_messages(**ordered),
      num_messages(**usual), mine.num_steps, theirs.num_steps, mine.busiest.bytes, theirs.busiest.bytes);
  order.builder = *std::move(ordered);
  return order;
}

}  // namespace hips::comm
