#pragma once

#include <hips/plan.hpp>

#include "lib/base/collective.hpp"
#include "lib/base/result.hpp"
#include "lib/plan/plan_builder.hpp"
#include "lib/plan/prune/kept_steps.hpp"

namespace hips::plan {

/// The program of one rank of the plan that prune() makes, with the shape pruned_shape().
///
/// Cost     for a PrunableBuilder, as all builders of this library make: the rank's own steps, times the
///          logarithm of their number and what the builder needs to judge a message; for collectives with
///          sections also the check of owners(). For other builders the programs of all ranks.
/// Errors   those of prune().
/// Example  auto program = pruned_program(*builder, Collective::kBcast, root, rank);
Result<Program> pruned_program(const PlanBuilder& builder, Collective collective, Rank root, Rank rank);

}  // namespace hips::plan
