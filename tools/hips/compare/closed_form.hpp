#pragma once

#include <optional>
#include <string>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/plan/plan_builder.hpp"

namespace hips::compare {

/// The load of a plan's busiest link per byte of the vector, from arithmetic alone.
struct ClosedForm {
  double busiest_share = 0;       ///< bytes on the busiest link, in vectors
  double seconds_per_byte = 0;    ///< of that link
  std::string busiest;            ///< "NIC 0", "leaf switch"
  std::int64_t fan_in = 0;        ///< peers that send to one NIC of a rank at the same time
  std::int64_t num_messages = 0;  ///< of the rank that sends most; 0: see the plan's shape
};

/// The cost of plans whose programs are too many or too long to count: flat-ring, flat-mesh and flat-ps on
/// any topology (several leaders only if no server relays); HiPS with rings or meshes if one NIC or one level
/// serves all servers. Nothing for other plans.
///
/// Cost     levels of the topology.
/// Source   the messages of each plan's programs; servers relay along the routes of Topology::route.
///          tests/tools/hips/compare/plan_cost_test.cpp compares them with counted loads on small topologies.
std::optional<ClosedForm> closed_form(const Topology& topology, const PlanShape& shape,
                                      const PlanRequest& request);

}  // namespace hips::compare
