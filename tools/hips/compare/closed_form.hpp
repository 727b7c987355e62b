#pragma once

#include <optional>
#include <string>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

namespace hips::compare {

/// The busiest link of a plan, per byte of the vector, from arithmetic alone.
struct ClosedForm {
  double busiest_share = 0;       ///< bytes on the busiest link, in vectors
  double seconds_per_byte = 0;    ///< of that link
  std::string busiest;            ///< "NIC 0", "leaf switch"
  std::int64_t fan_in = 0;        ///< peers that send to one rank by one NIC at once
  std::int64_t num_messages = 0;  ///< of the rank that sends most; 0: as the shape tells
};

/// What plans cost whose programs are too many or too long to count: flat-ring, flat-mesh and flat-ps
/// anywhere (several leaders only where no server relays); HiPS with rings or meshes where one NIC or one
/// level serves all servers. Nothing for others.
///
/// Cost     levels of the topology.
/// Source   counting what each plan's programs send, where servers relay along the routes of Topology::route.
///          tests/tools/compare/closed_form_test.cpp compares them with counted loads on small topologies.
std::optional<ClosedForm> closed_form(const Topology& topology, const PlanShape& shape,
                                      const PlanRequest& request);

}  // namespace hips::compare
