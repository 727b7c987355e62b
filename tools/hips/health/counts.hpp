#pragma once

#include <cstddef>
#include <cstdint>
#include <set>

#include "topology/formats/topology_file.hpp"

namespace hips::health {

/// The switches and cables that a file tells, and those that are assumed beside them. Of topologies of more than kMostCables cables all
/// count as told, except their assumed switches.
struct WiringCounts {
  std::int64_t switches = 0, cables = 0;  ///< switches with those that assumed ones replace
  std::int64_t assumed_switches = 0, assumed_cables = 0;
  std::set<std::size_t> assumed_rates;  ///< network levels of whose cables no rate is told
};

/// Cost     linear in the cables.
WiringCounts count_wiring(const topology::TopologyFile& file);

}  // namespace hips::health
