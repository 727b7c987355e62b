#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/base/result.hpp"

namespace hips::compare {

/// A plan to price: a row of the table.
struct Entry {
  std::string name;  ///< "hips:ring", "flat-ps:4", "flat-ring, 2 NICs"
  PlanRequest request{};
  bool baseline = false;
  std::string wiring{};  ///< spec that it runs on
};

/// Reads --algorithms for one topology: "all", or names of `hips plan --list` with commas, each of which may
/// go on with what it takes: hips:PATTERN (one for all levels: ring, mesh/ring, ps:1), flat-ps:LEADERS,
/// flat-ring:RINGS.
///
/// "all" is every algorithm once, and hips:ring where the usual plan lets several senders meet at a NIC.
///
/// Errors   kInvalidArgument: an unknown name (the message lists them), an option that the algorithm does not
///          take or cannot read, a name that occurs twice.
Result<std::vector<Entry>> parse_entries(std::string_view text, const Topology& topology);

/// The flat algorithms on one switch, with one NIC a server, and on racks with as many NICs as `topology`
/// has: all servers one hop apart, the same rates, the same ranks on each server. With K NICs the mesh and
/// the PS are K lanes of one, each over its NIC.
std::vector<Entry> baseline_entries(const Topology& topology);

}  // namespace hips::compare
