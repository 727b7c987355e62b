#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <hips/topology.hpp>

namespace hips::topology {

/// The level of the servers' first digit: 1 if there is a node level, otherwise 0.
inline std::int32_t first_network_level(const Topology& topology) {
  return topology.ranks_per_server > 1 ? 1 : 0;
}

/// Levels without the node level.
inline std::span<const Level> network_levels(const Topology& topology) {
  return std::span(topology.levels).subspan(static_cast<std::size_t>(first_network_level(topology)));
}

/// Do the cables of this level lead from server to server? Then rails[0] is "+" and rails[1] is "-".
inline bool is_of_cables(const Level& level) {
  return level.kind == LevelKind::kRing || level.kind == LevelKind::kLine;
}

/// The share of a level's NICs that lead somewhere: the two ends of a line have an unused NIC each.
inline double share_of_nics_in_use(const Level& level) {
  return level.kind == LevelKind::kLine
             ? static_cast<double>(level.radix - 1) / static_cast<double>(level.radix)
             : 1;
}

/// Is the topology, or a dimension of it, a line of cables? Then it is not a hierarchy of rings or switches.
inline bool has_lines(const Topology& topology) {
  return std::ranges::any_of(topology.levels,
                             [](const Level& level) { return level.kind == LevelKind::kLine; });
}

}  // namespace hips::topology
