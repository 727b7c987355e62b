#pragma once

#include <string>
#include <vector>

#include <hips/topology.hpp>

namespace hips::topology {

/// The result of reading a cluster's description of its wiring. All readers of this folder return one.
struct ClusterTopology {
  Topology topology;
  std::vector<std::string> nodes;  ///< by server
  std::vector<std::string> notes;  ///< entries that were ignored or interpreted, one line each
};

}  // namespace hips::topology
