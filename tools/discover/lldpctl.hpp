#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "lib/base/result.hpp"
#include "topology/cabling/lldp_neighbours.hpp"

namespace hips::discover {

/// Limits of lldpctl: it answers within milliseconds, with 2 KB for each neighbour.
struct LldpctlLimits {
  std::chrono::milliseconds time{5'000};
  std::size_t bytes = topology::kMostLldpBytes;
};

/// What the LLDP daemon of this server has heard from its neighbours, as `lldpctl -f json` prints it.
///
/// Cost     starts a program; at most the limits.
/// Errors   kUnsupported: there is no lldpctl. kSystem: it fails, as without a daemon or permission. kTimeout. kInvalidArgument:
///          more output than the limit, or output that is malformed.
Result<std::vector<topology::LldpNeighbour>> ask_lldpd(const LldpctlLimits& limits = {});

}  // namespace hips::discover
