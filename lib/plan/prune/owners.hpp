#pragma once

#include <vector>

#include <hips/plan.hpp>

#include "lib/base/result.hpp"
#include "lib/plan/plan_builder.hpp"

namespace hips::plan {

/// The rank that computes each block.
///
/// Cost     the blocks.
/// Errors   kUnsupported: a block has no owner or several, or a rank owns nothing. Such plans have no
///          sections.
Result<std::vector<Rank>> owners(const Plan& plan);

/// The same from arithmetic, without the programs of the ranks, where the builder is a PrunableBuilder.
Result<std::vector<Rank>> owners(const PlanBuilder& builder);

}  // namespace hips::plan
