#include "topology/wiring/stay_graph.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "topology/graph_wiring.hpp"
#include "topology/spec.hpp"
#include "topology/union_find.hpp"

namespace hips::topology {
namespace {

class NicNumbers {
 public:
  explicit NicNumbers(const ServerWiring& wiring)
      : wiring_(wiring), joined_(wiring.size()), nics_(wiring.num_servers) {
    for (const WiredCable& cable : wiring.cables)
      if (!wiring.is_server(cable.a)) joined_.join(cable.a, cable.b);
    find_planes();
  }

  /// By server: its cables by number of the NIC; SIZE_MAX: the NIC has none.
  std::vector<std::vector<std::size_t>> make() {
    for (std::size_t server = 0; server < wiring_.num_servers; ++server) {
      for (const auto& [plane, most] : planes_) {
        std::size_t number = 0;
        for (const std::size_t cable : cables_of(server))
          if (plane_of(cable, server) == plane) put(server, first_of_[plane] + number++, cable);
      }
      for (const std::size_t cable : cables_of(server))
        if (!first_of_.contains(plane_of(cable, server))) put(server, next(server), cable);
    }
    return std::move(nics_);
  }

 private:
  /// The switches that a cable leads to, or SIZE_MAX for a server.
  std::size_t plane_of(std::size_t cable, std::size_t server) {
    const std::size_t other = wiring_.across(cable, server);
    return wiring_.is_server(other) ? SIZE_MAX : joined_.find(other);
  }

  [[nodiscard]] std::vector<std::size_t> cables_of(std::size_t server) const {
    auto cables = wiring_.of[server];
    std::ranges::stable_sort(cables, {}, [&](std::size_t cable) { return wiring_.across(cable, server); });
    return cables;
  }

  /// Networks of at least half of the servers, by their first switch, with the most NICs of a server.
  void find_planes() {
    std::map<std::size_t, std::size_t> servers, most;
    for (std::size_t server = 0; server < wiring_.num_servers; ++server) {
      std::map<std::size_t, std::size_t> nics;
      for (const std::size_t cable : wiring_.of[server]) ++nics[plane_of(cable, server)];
      for (const auto& [plane, count] : nics) {
        ++servers[plane];
        most[plane] = std::max(most[plane], count);
      }
    }
    servers.erase(SIZE_MAX);
    for (const auto& [plane, count] : servers) {
      if (2 * count < wiring_.num_servers) continue;
      planes_.emplace_back(plane, most[plane]);
      first_of_[plane] = fixed_;
      fixed_ += most[plane];
    }
  }

  void put(std::size_t server, std::size_t nic, std::size_t cable) {
    auto& nics = nics_[server];
    if (nics.size() <= nic) nics.resize(nic + 1, SIZE_MAX);
    nics[nic] = cable;
  }
  [[nodiscard]] std::size_t next(std::size_t server) const { return std::max(nics_[server].size(), fixed_); }

  const ServerWiring& wiring_;
  UnionFind joined_;
  std::vector<std::pair<std::size_t, std::size_t>> planes_;
  std::map<std::size_t, std::size_t> first_of_;
  std::size_t fixed_ = 0;  ///< numbers of NICs for the networks of most servers
  std::vector<std::vector<std::size_t>> nics_;
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
  const auto nics = NicNumbers(wiring).make();
  for (std::size_t server = 0; server < nics.size(); ++server) {
    for (std::size_t nic = 0; nic < nics[server].size(); ++nic) {
      if (nics[server][nic] == SIZE_MAX) continue;
      GraphLink& link = graph.links[nics[server][nic]];
      (link.a == static_cast<std::int64_t>(server) ? link.a_port : link.b_port) = static_cast<Rail>(nic);
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
  cluster.notes.push_back(
      fmt::format("{}: the cables of {} servers and {} switches are those of no family; they stay a "
                  "graph, for trees and flat algorithms",
                  name, wiring.num_servers, wiring.size() - wiring.num_servers));
  return cluster;
}

}  // namespace hips::topology
