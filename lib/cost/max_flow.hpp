#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <hips/topology.hpp>

namespace hips::cost {

/// How much can leave some servers for the others: minimum cuts of a wiring, by maximum flows.
///
/// Switches forward, and so do servers: what a cut lets through is then no more than in truth, never less.
/// Cables that are down let nothing through.
///
/// Units    bytes/s, one direction; cables are full duplex.
/// Cost     a flow each: the cables, times those that the cut has, which is narrow around few servers.
/// Threads  none: one object, one thread.
/// Source   Edmonds and Karp 1972, as Boost.Graph has it: capacities are alike, so that each shortest way
/// fills
///          a cable of the cut.
class MaxFlow {
 public:
  MaxFlow(const Graph& graph, std::int64_t num_servers);
  ~MaxFlow();
  MaxFlow(const MaxFlow&) = delete;
  MaxFlow& operator=(const MaxFlow&) = delete;

  /// From the servers that `inside` marks to all others; both kinds exist.
  double leaving(const std::vector<bool>& inside);
  /// From one server to another. `side` becomes the servers on the first one's side of the cut.
  double between(std::int64_t from, std::int64_t to, std::vector<bool>& side);

 private:
  struct Network;
  std::unique_ptr<Network> network_;
};

}  // namespace hips::cost
