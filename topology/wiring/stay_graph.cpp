#include "topology/wiring/stay_graph.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lib/base/counted.hpp"
#include "topology/graph_wiring.hpp"
#include "topology/spec.hpp"
#include "topology/union_find.hpp"

namespace hips::topology {
namespace {

/// Numbers the NICs of each server from 0: in the order of the networks that they lead to, the same at all servers, and last those
/// to other servers; in one network by the names at their other ends.
///
/// Networks that every server has as many NICs in come first, so that these NICs have the same numbers at all servers. Then those of
/// most servers.
class NicNumbers {
 public:
  explicit NicNumbers(const ServerWiring& wiring) : wiring_(wiring), joined_(wiring.size()) {
    for (const WiredCable& cable : wiring.cables)
      if (!wiring.is_server(cable.a)) joined_.join(cable.a, cable.b);
    order_networks();
  }

  /// A server's cables by number of the NIC.
  std::vector<std::size_t> of(std::size_t server) {
    auto cables = wiring_.of[server];
    std::ranges::stable_sort(cables, {}, [&](std::size_t cable) {
      return std::pair(place_of(network_of(cable, server)), wiring_.across(cable, server));
    });
    return cables;
  }

 private:
  static constexpr std::size_t kServer = SIZE_MAX;

  /// One of the switches that a cable leads to, the same for all that are joined; kServer for a server.
  std::size_t network_of(std::size_t cable, std::size_t server) {
    const std::size_t other = wiring_.across(cable, server);
    return wiring_.is_server(other) ? kServer : joined_.find(other);
  }

  [[nodiscard]] std::size_t place_of(std::size_t network) const {
    return network == kServer ? kServer : place_.at(network);
  }

  void order_networks() {
    struct Network {
      std::size_t first = 0;  ///< of its switches
      std::size_t servers = 0, least_nics = SIZE_MAX, most_nics = 0;
    };
    std::map<std::size_t, Network> networks;
    for (std::size_t node = wiring_.size(); node-- > wiring_.num_servers;)
      networks[joined_.find(node)].first = node;
    for (std::size_t server = 0; server < wiring_.num_servers; ++server) {
      std::map<std::size_t, std::size_t> nics;
      for (const std::size_t cable : wiring_.of[server]) ++nics[network_of(cable, server)];
      nics.erase(kServer);
      for (const auto& [key, count] : nics) {
        Network& network = networks[key];
        ++network.servers;
        network.least_nics = std::min(network.least_nics, count);
        network.most_nics = std::max(network.most_nics, count);
      }
    }
    std::vector<std::pair<std::size_t, Network>> order(networks.begin(), networks.end());
    std::ranges::sort(order, {}, [&](const auto& entry) {
      const Network& network = entry.second;
      const bool even = network.servers == wiring_.num_servers && network.least_nics == network.most_nics;
      return std::tuple(!even, wiring_.num_servers - network.servers, network.first);
    });
    for (const auto& [key, network] : order) place_.emplace(key, place_.size());
  }

  const ServerWiring& wiring_;
  UnionFind joined_;
  std::map<std::size_t, std::size_t> place_;  ///< of networks in their order
};

}  // namespace

Result<ClusterTopology> stay_graph(std::string_view name, const ServerWiring& wiring) {
  Graph graph;
  for (std::size_t node = 0; node < wiring.size(); ++node) {
    const bool is_switch = !wiring.is_server(node);
    const auto id = static_cast<std::int64_t>(is_switch ? node - wiring.num_servers : node);
    graph.nodes.push_back(
        {.is_switch = is_switch, .id = id, .name = is_switch ? wiring.names[node] : fmt::format("<{}>", id)});
  }
  for (const WiredCable& cable : wiring.cables) {
    graph.links.push_back({.a = static_cast<std::int64_t>(cable.a),
                           .b = static_cast<std::int64_t>(cable.b),
                           .bandwidth_bytes_per_s = cable.bandwidth_bytes_per_s,
                           .latency_ns = cable.latency_ns,
                           .up = cable.up});
  }
  for (std::size_t server = 0; server < wiring.num_servers; ++server) {
    if (const std::size_t nics = wiring.of[server].size(); nics > static_cast<std::size_t>(kMaxRails))
      return fail(Code::kInvalidArgument, fmt::format("{}: server {} has {} NICs (valid: up to {})", name,
                                                      in_quotes(wiring.names[server]), nics, kMaxRails));
  }
  NicNumbers numbers(wiring);
  for (std::size_t server = 0; server < wiring.num_servers; ++server) {
    Rail nic = 0;
    for (const std::size_t cable : numbers.of(server)) {
      GraphLink& link = graph.links[cable];
      (link.a == static_cast<std::int64_t>(server) ? link.a_port : link.b_port) = nic++;
    }
  }
  // By server and NIC, then by names.
  std::ranges::stable_sort(graph.links, [](const GraphLink& x, const GraphLink& y) {
    return std::pair(x.a, x.a_port) < std::pair(y.a, y.a_port);
  });
  auto topology = make_graph_topology(std::move(graph));
  if (!topology) return fail(topology.error().code, fmt::format("{}: {}", name, topology.error().message));
  ClusterTopology cluster{.topology = std::move(*topology), .nodes = {}, .notes = wiring.notes};
  cluster.nodes.assign(wiring.names.begin(),
                       wiring.names.begin() + static_cast<std::ptrdiff_t>(wiring.num_servers));
  cluster.notes.push_back(fmt::format(
      "{}: the cables of {} and {} are those of no family; they stay a graph, for trees and flat algorithms",
      name, counted(wiring.num_servers, "server"), counted(wiring.size() - wiring.num_servers, "switch")));
  return cluster;
}

}  // namespace hips::topology
