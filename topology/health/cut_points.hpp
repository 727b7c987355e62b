#pragma once

#include <cstddef>
#include <vector>

#include "topology/cabling/cabling.hpp"

namespace hips::topology {

/// A switch or a cable whose loss cuts servers off from each other.
struct CutPoint {
  bool is_cable = false;
  std::size_t index = 0;    ///< of the cable or the node
  std::size_t parts = 0;    ///< of the servers that are left, which no cables join any more; at least 2
  std::size_t cut_off = 0;  ///< servers outside the largest part; all, if each part is one server
  /// Outside the largest part are only single servers, which lead to nothing but this: at a leaf, or at their only cable.
  bool only_single_servers = false;
  friend bool operator==(const CutPoint&, const CutPoint&) = default;
};

/// The single points of failure of servers and switches: articulation points among the switches, and bridges. Servers relay, and
/// cables that are down do not count.
///
/// Cost     linear in nodes and cables.
/// Returns  switches, then cables, each ascending.
/// Source   Tarjan 1972, doi:10.1137/0201010.
std::vector<CutPoint> cut_points(const Cabling& cabling);

}  // namespace hips::topology
