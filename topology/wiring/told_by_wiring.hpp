#pragma once

#include <cstdint>
#include <span>

#include "topology/formats/told_wiring.hpp"
#include "topology/wiring/wiring.hpp"

namespace hips::topology {

/// What a wiring tells beyond the topology that was made of it. `seen` has the node of the wiring for each node of topology.graph();
/// -1: there is none.
///
/// Cost     linear in the cables, but for sorting.
ToldWiring told_by(const ServerWiring& wiring, const Topology& topology, std::span<const std::int64_t> seen);

}  // namespace hips::topology
