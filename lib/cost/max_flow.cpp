#include "lib/cost/max_flow.hpp"

#include <cmath>
#include <cstdint>

// Boost's headers cause these warnings.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/edmonds_karp_max_flow.hpp>
#pragma GCC diagnostic pop

namespace hips::cost {
namespace {

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using Arcs = boost::adjacency_list<
    boost::vecS, boost::vecS, boost::directedS, boost::no_property,
    boost::property<boost::edge_capacity_t, std::int64_t,
                    boost::property<boost::edge_residual_capacity_t, std::int64_t,
                                    boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;

}  // namespace

/// The wiring with a source and a sink. An arc leads from the source to each server, and from each server to
/// the sink; each query sets which of them have capacity.
struct MaxFlow::Network {
  /// `nodes` is the number of servers and switches.
  explicit Network(std::size_t nodes) : arcs(nodes + 2), source(nodes), sink(nodes + 1) {}

  Arcs arcs;
  Traits::vertex_descriptor source, sink;
  std::int64_t num_servers = 0, everything = 1;
  std::vector<Traits::edge_descriptor> from_source, to_sink;

  Traits::edge_descriptor add(std::size_t a, std::size_t b, std::int64_t there, std::int64_t back) {
    const auto forth = boost::add_edge(a, b, arcs).first;
    const auto opposite = boost::add_edge(b, a, arcs).first;
    put(boost::edge_capacity, arcs, forth, there);
    put(boost::edge_capacity, arcs, opposite, back);
    put(boost::edge_reverse, arcs, forth, opposite);
    put(boost::edge_reverse, arcs, opposite, forth);
    return forth;
  }
  void widen(Traits::edge_descriptor arc, bool wide) {
    put(boost::edge_capacity, arcs, arc, wide ? everything : 0);
  }
  std::int64_t flow() { return boost::edmonds_karp_max_flow(arcs, source, sink); }
};

MaxFlow::MaxFlow(const Graph& graph, std::int64_t num_servers)
    : network_(std::make_unique<Network>(graph.nodes.size())) {
  Network& network = *network_;
  network.num_servers = num_servers;
  for (const GraphLink& link : graph.links) {
    if (!link.up) continue;
    const auto rate = static_cast<std::int64_t>(std::llround(link.bandwidth_bytes_per_s));
    network.add(static_cast<std::size_t>(link.a), static_cast<std::size_t>(link.b), rate, rate);
    network.everything += rate;
  }
  for (std::int64_t server = 0; server < num_servers; ++server) {
    network.from_source.push_back(network.add(network.source, static_cast<std::size_t>(server), 0, 0));
    network.to_sink.push_back(network.add(static_cast<std::size_t>(server), network.sink, 0, 0));
  }
}

MaxFlow::~MaxFlow() = default;

double MaxFlow::leaving(const std::vector<bool>& inside) {
  Network& network = *network_;
  for (std::size_t server = 0; server < inside.size(); ++server) {
    network.widen(network.from_source[server], inside[server]);
    network.widen(network.to_sink[server], !inside[server]);
  }
  return static_cast<double>(network.flow());
}

double MaxFlow::between(std::int64_t from, std::int64_t to, std::vector<bool>& side) {
  Network& network = *network_;
  for (std::int64_t server = 0; server < network.num_servers; ++server) {
    network.widen(network.from_source[static_cast<std::size_t>(server)], server == from);
    network.widen(network.to_sink[static_cast<std::size_t>(server)], server == to);
  }
  const auto flow = static_cast<double>(network.flow());
  // The nodes that the source still reaches over arcs with residual capacity.
  std::vector<bool> reached(boost::num_vertices(network.arcs), false);
  std::vector<Traits::vertex_descriptor> order{network.source};
  reached[network.source] = true;
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (auto [arc, end] = boost::out_edges(order[i], network.arcs); arc != end; ++arc) {
      const auto next = boost::target(*arc, network.arcs);
      if (reached[next] || get(boost::edge_residual_capacity, network.arcs, *arc) <= 0) continue;
      reached[next] = true;
      order.push_back(next);
    }
  }
  side.assign(reached.begin(), reached.begin() + network.num_servers);
  return flow;
}

}  // namespace hips::cost
