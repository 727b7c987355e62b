#pragma once

#include <hips/topology.hpp>

namespace hips {

/// The keyword of a family in specs: "bcube", ...
const char* to_string(Family family);
/// "switch", "ring", "tree", "node"
const char* to_string(LevelKind kind);

}  // namespace hips
