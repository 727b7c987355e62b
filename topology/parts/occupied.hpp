#pragma once

#include <optional>
#include <span>
#include <string>

#include <hips/topology.hpp>

namespace hips::topology {

/// The spec of the part that these ranks of a topology occupy, such as "bcube:3,0/2" or "torus:4x3[0-2]". The
/// first of them is its rank 0.
///
/// None if no spec describes the part (the number of ranks differs among servers, or a cable has its own
/// rate), if its servers reach each other only through others, if there is only one server, or if the ranks
/// are not in ascending order.
///
/// Cost     the topology's servers.
std::optional<std::string> occupied_part(const Topology& topology, std::span<const Rank> ranks);

}  // namespace hips::topology
