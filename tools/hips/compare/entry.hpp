#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/base/result.hpp"
#include "lib/plan/plan_builder.hpp"

namespace hips::compare {

/// A plan to estimate: a row of the table.
struct Entry {
  std::string name;  ///< "hips:ring", "flat-ps:4", "flat-ring, 2 NICs"
  PlanRequest request{};
  bool baseline = false;
  std::string wiring{};  ///< spec of the topology that it runs on
};

/// Parses --algorithms for one topology: "all", or names of `hips plan --list` with commas. A name may have
/// parameters: hips:PATTERN (one for all levels: ring, mesh/ring, ps:1), flat-ps:LEADERS, flat-ring:RINGS.
///
/// "all" is every algorithm once, and hips:ring if the default plan causes incast.
///
/// Errors   kInvalidArgument: an unknown name (the message lists them), a parameter that the algorithm does
/// not
///          take or that is malformed, a name that occurs twice.
Result<std::vector<Entry>> parse_entries(std::string_view text, const Topology& topology);

/// The flat algorithms on one switch, with one NIC per server, and on rail racks with as many NICs as
/// `topology` has. All servers are one hop apart, with the same rates and the same number of ranks. With K
/// NICs the mesh and the PS have K lanes, one per NIC.
std::vector<Entry> baseline_entries(const Topology& topology);

}  // namespace hips::compare
