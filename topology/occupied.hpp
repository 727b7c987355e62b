#pragma once

#include <optional>
#include <span>
#include <string>

#include <hips/topology.hpp>

namespace hips::topology {

/// The spec of what these ranks of a topology occupy, the first of them rank 0 of it: "bcube:3,0/2",
/// "torus:4x3[0-2]".
///
/// Empty where that is no topology with a spec (other numbers of ranks on other servers, a cable with a rate
/// of its own), where its servers reach each other only through others, where they are one server, or not in
/// ascending order.
///
/// Cost     the topology's servers.
std::optional<std::string> occupied_part(const Topology& topology, std::span<const Rank> ranks);

}  // namespace hips::topology
