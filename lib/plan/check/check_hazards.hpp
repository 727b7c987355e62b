#pragma once

#include <span>

#include "lib/plan/check/check_findings.hpp"
#include "lib/plan/check/check_order.hpp"

namespace hips::plan {

/// Finds pairs of accesses of one rank to the same elements, at least one of them a write, where the later
/// step may start before the earlier one has finished. Order that comes only from the number of credits does
/// not count.
///
/// `order` must be free of cycles; `topological` is its order. Programs are in an order in which they could
/// run, so the step that is first in the program must come first.
///
/// Cost     each element keeps its last writer and the readers since: pairs grow with accesses, not with
///          their square. Bit sets of ancestors decide pairs that are ordered inside the rank; a search in
///          the whole order decides the rest.
void check_hazards(const Plan& plan, const StepTable& table, const CheckLayout& layout,
                   const HappensBefore& order, std::span<const NodeIdx> topological, bool in_place,
                   Findings& findings);

}  // namespace hips::plan
