#pragma once

#include <cstdint>
#include <vector>

#include <hips/topology.hpp>

namespace hips::topology {

/// The switches of one tier of a tree: their cables upwards are shared by the servers below.
struct Tier {
  const char* name = "";           ///< "edge switches"
  const char* one = "";            ///< "edge switch"
  std::int64_t servers_below = 0;  ///< of one switch, or one pod
  std::int64_t count = 0;
  double bandwidth_bytes_per_s = 0;  ///< of all cables upwards together, one direction
};

/// Edge switches and pods of a Fat-Tree, leaf switches of a leaf-spine; none elsewhere.
std::vector<Tier> tiers(const Topology& topology);

/// Bandwidth of one rail, one direction; by rail.
std::vector<double> rail_bandwidths(const Topology& topology);

}  // namespace hips::topology
