#pragma once

#include <memory>
#include <string>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/base/result.hpp"
#include "lib/plan/plan_builder.hpp"

namespace hips::comm {

/// The plan of HIPS_REPRODUCIBLE=any, and what it costs.
struct RankOrder {
  std::unique_ptr<PlanBuilder> builder;
  /// "flat mesh of 9 ranks instead of HiPS, mesh: for 1 MiB 16 messages a rank instead of 8, ..."
  std::string price;
};

/// Makes the plan that folds each element over ranks 0, 1, ..., n-1 from left to right, in one step, wherever
/// the element lies in the vector and wherever the ranks are: floating-point sums come out the same on every
/// topology, with every segment size, and as in memory that the ranks of one host share (lib/node folds by
/// rank, too).
///
/// A mesh of all ranks does that. Every hierarchy, ring or doubling brackets by place; no plan that passes
/// partial sums on can do without.
///
/// Cost     2(n-1) messages a rank, 2(n-1)/n * bytes sent, over relays where ranks are no neighbours.
/// Errors   those of plan::make_builder().
Result<RankOrder> make_rank_order(const Topology& topology);

}  // namespace hips::comm
