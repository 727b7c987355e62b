#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <hips/topology.hpp>

#include "lib/base/result.hpp"

namespace hips {

/// The wiring of a topology of Family::kGraph, with what routes need. Servers are the first nodes of the graph.
///
/// A plane is a set of switches that cables between them join: any two NICs of a plane reach each other in one hop.
struct GraphWiring {
  Graph graph;
  std::int64_t num_servers = 0;
  Rail num_rails = 0;  ///< the most NICs of a server
  std::vector<std::int64_t>
      cable;  ///< [server * num_rails + rail]: its number in graph.links; -1: none is up
  std::vector<std::int32_t> plane;                 ///< the same for planes; -1: the cable leads to a server
  std::vector<std::vector<std::int64_t>> members;  ///< by plane: servers, ascending
  std::vector<std::vector<std::int64_t>> of;       ///< by node: its cables that are up
  std::int64_t diameter_hops = 0;                  ///< at most so many hops between two servers

  [[nodiscard]] std::size_t nic(std::int64_t server, Rail rail) const {
    return static_cast<std::size_t>(server * num_rails + rail);
  }
  [[nodiscard]] std::int64_t across(std::int64_t link, std::int64_t node) const {
    const GraphLink& one = graph.links[static_cast<std::size_t>(link)];
    return one.a == node ? one.b : one.a;
  }
};

namespace topology {

/// Makes a topology of a wiring whose links give the numbers of the NICs of servers. Servers relay unless one NIC of each is
/// in the same plane. The spec is "graph", which no spec describes: the caller sets it.
///
/// Cost     linear in the cables; breadth-first searches from up to 1024 servers if servers relay.
/// Errors   kInvalidArgument: two cables at one NIC, or more NICs than kMaxRails.
Result<Topology> make_graph_topology(Graph graph);

/// The hop from server a to b out of a NIC, or out of any with kNoRail; none if no cable and no plane joins them there. Ends
/// are servers.
std::optional<Hop> direct_hop(const GraphWiring& wiring, std::int64_t a, std::int64_t b, Rail out);

/// Does the way back out of the NIC where a hop arrives end at the NIC where it began?
bool is_two_way(const GraphWiring& wiring, const Hop& hop);

/// The hops from server a to b with the fewest relaying servers; out of `out` if that leads to b directly. Empty if there are
/// none.
std::vector<Hop> graph_route(const GraphWiring& wiring, std::int64_t a, std::int64_t b, Rail out);

/// Calls see(Hop) for each server in one hop, ordered by server and NIC.
void visit_direct(const GraphWiring& wiring, std::int64_t server, const std::function<void(const Hop&)>& see);

/// The cables between switches that a hop takes, with whether it goes from end a to end b: a shortest path. Which of several
/// depends on the two servers, so that different pairs use different ones; there and back it is the same.
///
/// Cost     the switches and cables of the plane, if the ends are at different switches.
std::vector<std::pair<std::int64_t, bool>> switch_path(const GraphWiring& wiring, const Hop& hop);

}  // namespace topology
}  // namespace hips
