#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace hips::plan {

/// Searches cover grids of up to this many servers, so that a set of servers is one word.
inline constexpr std::int64_t kMaxSearchedServers = 64;

/// A stop of a ring that was searched for.
struct RingStop {
  std::int32_t server = 0;
  std::int32_t out_level = 0;  ///< the level on which the ring leaves this server
  std::int32_t out_sign = +1;  ///< on cables: by the "+" or the "-" port
  std::int32_t in_level = 0;   ///< the level on which it arrives
  std::int32_t in_sign = +1;   ///< on cables: the port by which it arrives
  friend bool operator==(const RingStop&, const RingStop&) = default;
};
using RingStops = std::vector<RingStop>;

/// A port that every server has, and where it leads.
struct RingPort {
  std::int32_t level = 0;
  std::int32_t sign = +1;  ///< of the digit's step; if `is_cable`, what leaves by "+" arrives by "-"
  bool is_cable = false;   ///< otherwise a switch, through which a server reaches any other of its group
};

/// `num_rings` directed cycles of neighbours through all servers. At each server every cycle leaves by a
/// different port, and arrives by a different port.
///
/// Ring p starts as the cycles that port p makes of each group. Two moves keep every ring a set of cycles:
/// two rings exchange arcs along an alternating path (out of a server by one ring, back along the other,
/// ...), or two arcs of one ring through one switch exchange their ends. Annealing reduces every ring to one
/// cycle.
///
/// Shapes   radices of at least 2, at most kMaxSearchedServers servers; num_rings of 1 to the number of
///          ports.
/// Cost     tens of ms at most.
/// Order    deterministic: the same rings on every machine.
std::optional<std::vector<RingStops>> search_port_rings(std::span<const std::int64_t> radices,
                                                        std::span<const RingPort> ports,
                                                        std::int32_t num_rings);

/// As many undirected cycles through all servers of a torus as it has dimensions; each cable is in one of
/// them. A side of 2 has two cables.
///
/// Cycle i starts as the rings of dimension i. If two opposite cables of a square belong to one cycle and the
/// other two to another, the cycles exchange them. Such cycles are known to exist for all sides of 3 and
/// more; annealing finds them.
///
/// Source   Aubert and Schneider 1982, doi:10.1016/0012-365X(82)90160-6; Kotzig 1973 for two dimensions.
std::optional<std::vector<RingStops>> search_cable_rings(std::span<const std::int64_t> sides);

}  // namespace hips::plan
