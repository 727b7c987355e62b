#pragma once

#include <span>

#include "lib/plan/check/check_findings.hpp"
#include "lib/plan/check/check_goal.hpp"
#include "lib/plan/check/check_layout.hpp"
#include "lib/plan/check/check_messages.hpp"
#include "lib/plan/check/contribution_set.hpp"

namespace hips::plan {

/// Follows a plan once, with sets of ranks for values, and finds contributions that are lost or doubled,
/// blocks that are not written, and blocks that another rank computes than the plan says.
///
/// `order` is any order of the steps with elements in which each step comes after those it waits for. If the
/// plan has no overlapping accesses, every run gives the same values; otherwise they are those of one run.
void check_contributions(const Plan& plan, const CheckGoal& goal, const StepTable& table,
                         const Messages& messages, const CheckLayout& layout, std::span<const StepIdx> order,
                         bool in_place, ContributionPool& pool, Findings& findings);

}  // namespace hips::plan
