#pragma once

#include <span>

#include "lib/plan/check_findings.hpp"
#include "lib/plan/check_order.hpp"

namespace hips::plan {

/// Finds pairs of accesses of one rank to the same elements, at least one of them a write, of which the
/// earlier step is not certain to have finished before the later one starts. Order that only the number of
/// credits gives does not count.
///
/// `order` must be free of cycles; `topological` is its order. Programs stand in an order in which they could
/// run, so the step that stands first has to come first.
///
/// Cost     each element keeps its last writer and the readers since: pairs grow with accesses, not with
/// their
///          square. Pairs ordered inside the rank are settled by bit sets of ancestors; what is left by a
///          search in the whole order.
void check_hazards(const Plan& plan, const StepTable& table, const CheckLayout& layout,
                   const HappensBefore& order, std::span<const NodeIdx> topological, bool in_place,
                   Findings& findings);

}  // namespace hips::plan
