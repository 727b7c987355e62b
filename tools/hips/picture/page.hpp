#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include <hips/plan.hpp>

#include "lib/cost/estimate.hpp"
#include "topology/formats/topology_file.hpp"

namespace hips::picture {

/// A plan as one HTML page that needs nothing but a browser: the wiring and its levels, an animation of who
/// holds which sums, what passes each NIC when (cost/timeline.hpp), and the plan's JSON with `notes`, to be
/// saved from it. Light or dark as the reader has it; everything works by keyboard. Opened at "#t=0.5" it
/// begins half-way.
///
/// Shapes   `builder` is for the topology of `file`; `cost` is its price.
/// Cost     the steps of all ranks; the same input gives the same page.
/// Errors   kUnsupported: too large to be drawn (drawable.hpp), or a message over a link that is down.
Result<std::string> plan_page(const topology::TopologyFile& file, const PlanBuilder& builder,
                              const nlohmann::ordered_json& notes, const cost::Cost& cost);

}  // namespace hips::picture
