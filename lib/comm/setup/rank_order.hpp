#pragma once

#include <memory>
#include <string>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/base/result.hpp"
#include "lib/plan/plan_builder.hpp"

namespace hips::comm {

/// The plan of HIPS_REPRODUCIBLE=any and its cost.
struct RankOrder {
  std::unique_ptr<PlanBuilder> builder;
  /// "flat mesh of 9 ranks instead of HiPS, mesh: for 1 MiB 16 messages per rank instead of 8, ..."
  std::string cost_comparison;
};

/// Builds the plan that reduces each element over ranks 0, 1, ..., n-1 from left to right, in one step. The order
/// depends neither on the position of the element nor on the placement of the ranks. So floating-point sums are
/// equal on every topology, with every segment size, and in shared memory (lib/node reduces in rank order, too).
///
/// The plan is a mesh of all ranks. Hierarchies, rings and doubling forward partial sums, so their order of
/// operations depends on the position.
///
/// Cost     2(n-1) messages per rank, 2(n-1)/n * bytes sent, over relays between ranks that are not neighbours.
/// Errors   those of plan::make_builder().
Result<RankOrder> make_rank_order(const Topology& topology);

}  // namespace hips::comm
