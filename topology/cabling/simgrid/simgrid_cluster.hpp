#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "topology/cabling/cabling_builder.hpp"

namespace hips::topology {

/// A cluster of a SimGrid platform.
struct SimgridCluster {
  std::string id;
  std::vector<std::string> servers;
  double bandwidth_bytes_per_s = 0;
  double latency_ns = 0;
  std::int64_t line = 0;
};

/// The numbers of a fat tree, from the servers upwards: a node of level i has `parents[i]` in level i + 1, which has `children[i]`
/// in level i, with `cables[i]` between the two.
struct SimgridFatTree {
  std::vector<std::size_t> children, parents, cables;
};

/// Limits of a cluster, which takes a line of text whatever its size: it is read within seconds.
inline constexpr std::size_t kMostSimgridNodes = 65'536;  ///< of a level
inline constexpr std::size_t kMostSimgridCables = 200'000;

/// The product of numbers; `most` + 1 if it is larger.
std::size_t product_of(const std::vector<std::size_t>& numbers, std::size_t most);

/// One switch with all servers.
void add_simgrid_switch(const SimgridCluster& cluster, CablingBuilder& builder);

/// Requires that the product of the children is the number of servers.
void add_simgrid_fat_tree(const SimgridCluster& cluster, const SimgridFatTree& tree, CablingBuilder& builder);

/// Rings in each dimension, the first of which varies fastest. Requires that the product of the sides is the number of servers.
void add_simgrid_torus(const SimgridCluster& cluster, const std::vector<std::size_t>& sides,
                       CablingBuilder& builder);

}  // namespace hips::topology
