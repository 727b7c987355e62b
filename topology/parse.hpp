#pragma once

#include <string_view>

#include <hips/topology.hpp>

#include "lib/base/result.hpp"

namespace hips::topology {

/// parse_topology() for use inside the library: returns what that throws.
Result<Topology> parse(std::string_view spec);

}  // namespace hips::topology
