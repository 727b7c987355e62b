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

/// A graph of servers and segments. A segment is a set of NICs that one switch or cable joins.
struct Segments {
  static constexpr std::int32_t kNone = -1;

  /// By server and NIC; kNone if a NIC leads to no other server.
  std::vector<std::vector<std::int32_t>> of;
  /// By segment, ascending; at least two servers each.
  std::vector<std::vector<NicId>> members;

  [[nodiscard]] std::size_t num_servers() const { return of.size(); }
  /// The number of NICs of a server that lead to others.
  [[nodiscard]] std::size_t degree(std::size_t server) const;
  /// Renumbers the segments by their first members, and drops those of one server.
  void compact();
};

/// The observed segments, and the NICs that do not work.
struct SeenSegments {
  Segments segments;
  /// NICs that share a subnet with others, but were observed to reach none of them.
  std::set<NicId> down;
  /// Pairs of one segment with a router on their path: their subnet is not one switch.
  std::size_t num_routed = 0;
  std::size_t num_reached = 0, num_untried = 0;  ///< pairs of one segment
};

/// The NICs of a subnet are a segment. If they reach each other in separate groups of two or more, each group
/// is a segment: the same private subnet is used in several places. A single NIC that reaches no other stays
/// in the segment of its subnet, and is down.
///
/// Cost     linear in NICs and paths.
/// Threads  pure; any thread.
SeenSegments segments_of(const Observation& seen);

/// The segments of a topology, by server of the whole and rail. All switches of a tree are one segment.
///
/// Errors   (thrown) those of Topology::graph().
Segments segments_of(const Topology& topology);

}  // namespace hips::topology
