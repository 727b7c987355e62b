#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include <hips/status.hpp>
#include <hips/topology.hpp>

namespace hips::plan {

/// A union-find over nodes: servers first, perhaps switches behind them.
class Forest {
 public:
  explicit Forest(std::int64_t nodes) : parent_(static_cast<std::size_t>(nodes)) {
    std::iota(parent_.begin(), parent_.end(), std::int64_t{0});
  }
  std::int64_t find(std::int64_t node) {
    while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
    return node;
  }
  bool join(std::int64_t a, std::int64_t b) {
    a = find(a);
    b = find(b);
    if (a != b) parent_[std::max(a, b)] = std::min(a, b);
    return a != b;
  }

 private:
  std::vector<std::int64_t> parent_;
};

/// kUnsupported where the topology's servers are not one component of `forest`; the message shows the
/// components.
Status check_joined(const Topology& topology, Forest& forest);

/// The same for the wiring without cables that are down, if some of these are between switches.
///
/// Cost     nothing if no such cable is down, otherwise the graph.
Status check_switches_joined(const Topology& topology);

}  // namespace hips::plan
