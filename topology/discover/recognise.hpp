#pragma once

#include <optional>
#include <string>
#include <vector>

#include <hips/topology.hpp>

#include "topology/discover/observation.hpp"
#include "topology/discover/placement.hpp"
#include "topology/discover/segments.hpp"

namespace hips::topology {

/// A family whose graph is the seen one, and where in it every server and NIC is.
struct Match {
  Topology topology;
  Placement placement;
  std::vector<std::string> equals;  ///< specs of other families with the same wiring
};

/// One switch, or a rack of rails: every segment has a NIC of every server.
std::optional<Match> match_rack(const Segments& seen);

/// BCube, Torus or mesh.
std::optional<Match> match_server_centric(const Segments& seen);

/// Servers of a BCube of which others are missing, NIC l of each being that of level l. The BCube is the
/// smallest that has these.
std::optional<Match> match_bcube_part(const Segments& seen);

/// Leaf-spine or Fat-Tree: one NIC for each server, subnets of equal size that reach each other, by hops.
std::optional<Match> match_tree(const Observation& seen);

/// A rack whose rails are several subnets each, which reach each other through routers.
std::optional<Match> match_routed_rack(const Observation& seen);

/// What comes nearest to something that is none: a rack of the NICs whose segments have most servers.
/// Missing NICs have -1 in the placement.
Match nearest_rack(const Segments& seen);

/// Segments without the numbers of NICs that lead nowhere at every server; families know no such.
struct Compressed {
  Segments segments;
  std::vector<std::size_t> nics;  ///< by NIC, the number that it had
};
Compressed compress(const Segments& seen);
/// Numbers of NICs as they were before.
void restore(Placement& placement, const std::vector<std::size_t>& nics);

/// Without the NICs of segments that have all servers.
Segments without_spanning(const Segments& seen);

}  // namespace hips::topology
