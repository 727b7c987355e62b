#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include <hips/topology.hpp>

#include "topology/discover/observation.hpp"

namespace hips::topology {

/// A NIC: its server and its number there.
using NicId = std::pair<std::size_t, std::size_t>;

/// Which NICs are joined by a switch, or a cable, and nothing else: a graph of servers and segments.
struct Segments {
  static constexpr std::int32_t kNone = -1;

  /// By server and NIC, kNone where a NIC leads to no other server.
  std::vector<std::vector<std::int32_t>> of;
  /// By segment, ascending; at least two servers each.
  std::vector<std::vector<NicId>> members;

  [[nodiscard]] std::size_t num_servers() const { return of.size(); }
  /// NICs of a server that lead to others.
  [[nodiscard]] std::size_t degree(std::size_t server) const;
  /// Numbers the segments anew, by their first members, and leaves out those of one server.
  void compact();
};

/// The segments of what ranks see, and what does not work there.
struct SeenSegments {
  Segments segments;
  /// NICs that share a subnet with others, of which they were seen to reach none.
  std::set<NicId> down;
  /// Pairs of one segment that were tried and passed a router: their subnet is no switch's.
  std::size_t num_routed = 0;
  std::size_t num_reached = 0, num_untried = 0;  ///< pairs of one segment
};

/// NICs of one subnet are a segment. Where some of them reach each other and others do not, in groups of two
/// or more, each group is one: the same private subnet in several places. A single NIC that reaches nobody
/// stays in its subnet's, and is down.
///
/// Cost     linear in NICs and ways.
/// Threads  pure; any thread.
SeenSegments segments_of(const Observation& seen);

/// The segments of a topology, by server of the whole and rail. All switches of a tree are one segment.
///
/// Errors   (thrown) those of Topology::graph().
Segments segments_of(const Topology& topology);

}  // namespace hips::topology
