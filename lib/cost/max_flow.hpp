#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <hips/topology.hpp>

namespace hips::cost {

/// Minimum cuts of a wiring, by maximum flows: the bandwidth from some servers to the others.
///
/// Switches and servers forward, so a cut is never narrower than for real traffic. Cables that are down have
/// no capacity.
///
/// Units    bytes/s, one direction; cables are full duplex.
/// Cost     a flow for each call: the number of cables times those in the cut, which is small for few servers.
/// Threads  none: one object, one thread.
/// Source   Edmonds and Karp 1972, from Boost.Graph. Capacities are similar, so each shortest path fills a
///          cable of the cut.
class MaxFlow {
 public:
  MaxFlow(const Graph& graph, std::int64_t num_servers);
  ~MaxFlow();
  MaxFlow(const MaxFlow&) = delete;
  MaxFlow& operator=(const MaxFlow&) = delete;

  /// The flow from the servers that `inside` marks to all others. Requires servers of both kinds.
  double leaving(const std::vector<bool>& inside);
  /// The flow from one server to another. Sets `side` to the servers on the first one's side of the cut.
  double between(std::int64_t from, std::int64_t to, std::vector<bool>& side);

 private:
  struct Network;
  std::unique_ptr<Network> network_;
};

}  // namespace hips::cost
