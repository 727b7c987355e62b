#pragma once

#include <span>

#include "lib/plan/check_findings.hpp"
#include "lib/plan/check_goal.hpp"
#include "lib/plan/check_layout.hpp"
#include "lib/plan/check_messages.hpp"
#include "lib/plan/contribution_set.hpp"

namespace hips::plan {

/// Follows a plan once, with sets of ranks for values, and finds what is lost, doubled, unwritten, or owned
/// by another rank than the plan says.
///
/// `order` is any order of the steps that have elements in which each comes after what it waits for. Where
/// the plan is free of overlapping accesses every run gives these values; else they are those of one run.
void check_contributions(const Plan& plan, const CheckGoal& goal, const StepTable& table,
                         const Messages& messages, const CheckLayout& layout, std::span<const StepIdx> order,
                         bool in_place, ContributionPool& pool, Findings& findings);

}  // namespace hips::plan
