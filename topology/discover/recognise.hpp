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

/// Leaf-spine or Fat-Tree: one NIC for each server, subnets of equal size that reach each other, by hops.
std::optional<Match> match_tree(const Observation& seen);

/// A rack whose rails are several subnets each, which reach each other through routers.
std::optional<Match> match_routed_rack(const Observation& seen);

/// What comes nearest to something that is none: a rack of the NICs whose segments have most servers.
/// Missing NICs have -1 in the placement.
Match nearest_rack(const Segments& seen);

/// Without the NICs of segments that have all servers.
Segments without_spanning(const Segments& seen);

}  // namespace hips::topology
