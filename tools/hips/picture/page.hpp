#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include <hips/plan.hpp>

#include "lib/cost/estimate.hpp"
#include "lib/plan/plan_builder.hpp"
#include "topology/formats/topology_file.hpp"

namespace hips::picture {

/// A plan as one self-contained HTML page: the wiring and its levels, an animation of the sums that each rank
/// holds, the traffic of each NIC over time (cost/timeline.hpp), and the plan's JSON with `notes`, for
/// saving. Follows the reader's light or dark scheme; all controls work with the keyboard. The fragment
/// "#t=0.5" starts half-way.
///
/// Shapes   `builder` is for the topology of `file`; `cost` is the cost of the plan.
/// Cost     linear in the steps of all ranks; the same input gives the same page.
/// Errors   kUnsupported: too large to be drawn (drawable.hpp), or a message over a link that is down.
Result<std::string> plan_page(const topology::TopologyFile& file, const PlanBuilder& builder,
                              const nlohmann::ordered_json& notes, const cost::Cost& cost);

}  // namespace hips::picture
