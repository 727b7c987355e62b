#pragma once

#include <optional>
#include <string>
#include <vector>

#include <hips/topology.hpp>

#include "topology/discover/observation.hpp"
#include "topology/discover/placement.hpp"
#include "topology/discover/segments.hpp"

namespace hips::topology {

/// A family whose graph is the observed one, with the placement of every server and NIC.
struct Match {
  Topology topology;
  Placement placement;
  std::vector<std::string> equals;  ///< specs of other families with the same wiring
};

/// One switch, or a rack of rails: every segment has a NIC of every server.
std::optional<Match> match_rack(const Segments& seen);

/// BCube, Torus or mesh.
std::optional<Match> match_server_centric(const Segments& seen);

/// Some servers of a BCube; NIC l of each belongs to level l. The BCube is the smallest that has these
/// servers.
std::optional<Match> match_bcube_part(const Segments& seen);

/// Leaf-spine or Fat-Tree: one NIC per server, and subnets of equal size that reach each other; found by
/// hops.
std::optional<Match> match_tree(const Observation& seen);

/// A rack whose rails are several subnets each, which reach each other through routers.
std::optional<Match> match_routed_rack(const Observation& seen);

/// The fallback for wirings of no family: a rack of the NICs whose segments have most servers. Missing NICs
/// have -1 in the placement.
Match nearest_rack(const Segments& seen);

/// Segments without the NIC numbers that are unconnected at every server; families have none.
struct Compressed {
  Segments segments;
  std::vector<std::size_t> nics;  ///< by new number of a NIC, the old one
};
Compressed compress(const Segments& seen);
/// Restores the old numbers of NICs.
void restore(Placement& placement, const std::vector<std::size_t>& nics);

/// Removes the segments that have all servers.
Segments without_spanning(const Segments& seen);

}  // namespace hips::topology
