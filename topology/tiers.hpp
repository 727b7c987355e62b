#pragma once

#include <cstdint>
#include <vector>

#include <hips/topology.hpp>

namespace hips::topology {

/// The switches of one tier of a tree. The servers below share their cables upwards.
struct Tier {
  const char* name = "";           ///< "edge switches"
  const char* one = "";            ///< "edge switch"
  std::int64_t servers_below = 0;  ///< of one switch, or one pod
  std::int64_t count = 0;
  double bandwidth_bytes_per_s = 0;  ///< of all cables upwards together, one direction
};

/// The tiers of a topology: edge switches and pods of a Fat-Tree, leaf switches of a leaf-spine, none of
/// others.
std::vector<Tier> tiers(const Topology& topology);

/// The bandwidth of each rail in one direction.
std::vector<double> rail_bandwidths(const Topology& topology);

}  // namespace hips::topology
