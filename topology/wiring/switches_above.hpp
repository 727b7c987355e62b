#pragma once

#include <cstddef>
#include <string>

#include "topology/cabling/cabling.hpp"

namespace hips::topology {

/// Adds the switches that join leaf switches where servers alone told the cables (Cabling::heard_by_servers), and these fall
/// apart: as many as the leaf with the most servers' cables has of them, "above-1" and so on, each with a cable of the servers'
/// highest rate to every leaf, so that none of these limits a server. These come last among nodes and cables. Adds none if the cables join all servers, if servers
/// apart from others have no switch, or if there would be more than a cluster can have.
///
/// Result   how many were added.
/// Cost     linear in nodes, cables, and what is added.
std::size_t add_switches_above(Cabling& cabling);

}  // namespace hips::topology
