#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include <hips/topology.hpp>

namespace hips::topology {

/// A server (-1 if it is not in use) and its NIC.
using NicEnd = std::pair<std::int64_t, Rail>;

/// The other end of the cable from a server's NIC to another server. None if the NIC leads to a switch, or
/// nowhere, at the edge of a mesh.
std::optional<NicEnd> other_end(const Topology& topology, std::int64_t server, Rail rail);

}  // namespace hips::topology
