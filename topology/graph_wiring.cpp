#include "topology/graph_wiring.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include <fmt/format.h>

#include "lib/base/counted.hpp"
#include "topology/most_common.hpp"
#include "topology/spec.hpp"
#include "topology/union_find.hpp"

namespace hips::topology {
namespace {

/// The distances between all servers are computed for up to so many.
constexpr std::int64_t kMostSearched = 1024;

std::int64_t count_servers_of(const Graph& graph) {
  return std::ranges::count_if(graph.nodes, [](const GraphNode& node) { return !node.is_switch; });
}

Result<void> find_nics(GraphWiring& wiring) {
  const Graph& graph = wiring.graph;
  const auto is_server = [&](std::int64_t node) { return node < wiring.num_servers; };
  for (const GraphLink& link : graph.links) {
    if (is_server(link.a)) wiring.num_rails = std::max(wiring.num_rails, link.a_port + 1);
    if (is_server(link.b)) wiring.num_rails = std::max(wiring.num_rails, link.b_port + 1);
  }
  if (wiring.num_rails > kMaxRails)
    return fail(Code::kInvalidArgument, fmt::format("a server of the graph has {} NICs (valid: up to {})",
                                                    wiring.num_rails, kMaxRails));
  const auto nics = static_cast<std::size_t>(wiring.num_servers * wiring.num_rails);
  wiring.cable.assign(nics, -1);
  wiring.plane.assign(nics, -1);
  wiring.of.resize(graph.nodes.size());
  std::vector<bool> used(nics, false);
  for (std::size_t i = 0; i < graph.links.size(); ++i) {
    const GraphLink& link = graph.links[i];
    for (const auto& [node, port] : {std::pair(link.a, link.a_port), std::pair(link.b, link.b_port)}) {
      const auto number = static_cast<std::int64_t>(i);
      if (link.up) wiring.of[static_cast<std::size_t>(node)].push_back(number);
      if (!is_server(node)) continue;
      const std::size_t nic = wiring.nic(node, port);
      if (used[nic])
        return fail(Code::kInvalidArgument,
                    fmt::format("two cables are at NIC {} of server {}; a NIC has one", port, node));
      used[nic] = true;
      if (link.up) wiring.cable[nic] = number;
    }
  }
  return {};
}

void find_planes(GraphWiring& wiring) {
  UnionFind joined(wiring.graph.nodes.size());
  for (const GraphLink& link : wiring.graph.links)
    if (link.up && link.a >= wiring.num_servers && link.b >= wiring.num_servers)
      joined.join(static_cast<std::size_t>(link.a), static_cast<std::size_t>(link.b));
  std::map<std::size_t, std::int32_t> planes;
  for (std::int64_t server = 0; server < wiring.num_servers; ++server) {
    for (Rail rail = 0; rail < wiring.num_rails; ++rail) {
      const std::size_t nic = wiring.nic(server, rail);
      if (wiring.cable[nic] < 0) continue;
      const std::int64_t node = wiring.across(wiring.cable[nic], server);
      if (node < wiring.num_servers) continue;
      const auto [plane, is_new] = planes.try_emplace(joined.find(static_cast<std::size_t>(node)),
                                                      static_cast<std::int32_t>(planes.size()));
      if (is_new) wiring.members.emplace_back();
      wiring.plane[nic] = plane->second;
      auto& members = wiring.members[static_cast<std::size_t>(plane->second)];
      if (members.empty() || members.back() != server) members.push_back(server);
    }
  }
}

/// Spreads pairs of servers over equal paths; the same for (a, b) and (b, a).
std::size_t spread(std::int64_t a, std::int64_t b) {
  const auto low = static_cast<std::uint64_t>(std::min(a, b)),
             high = static_cast<std::uint64_t>(std::max(a, b));
  std::uint64_t hash = (low * 0x9e3779b97f4a7c15U) ^ (high * 0xc2b2ae3d27d4eb4fU);
  hash ^= hash >> 29U;
  return static_cast<std::size_t>(hash);
}

/// The NICs of a server in a plane.
std::vector<Rail> nics_in(const GraphWiring& wiring, std::int64_t server, std::int32_t plane) {
  std::vector<Rail> nics;
  for (Rail rail = 0; rail < wiring.num_rails; ++rail)
    if (wiring.plane[wiring.nic(server, rail)] == plane) nics.push_back(rail);
  return nics;
}

[[nodiscard]] double rate_of(const GraphWiring& wiring, std::int64_t server, Rail rail) {
  return wiring.graph.links[static_cast<std::size_t>(wiring.cable[wiring.nic(server, rail)])]
      .bandwidth_bytes_per_s;
}

/// Which of a server's NICs is the partner of the first NIC of another server that has fewer: shares of those servers are
/// proportional to the rates. Multiples of the golden ratio fill them evenly, however few there are.
std::size_t first_partner(const GraphWiring& wiring, std::int64_t server, const std::vector<Rail>& nics,
                          std::int64_t other) {
  double sum = 0;
  for (const Rail rail : nics) sum += rate_of(wiring, server, rail);
  constexpr double kGoldenRatio = 0.6180339887498949;
  const double turns = static_cast<double>(other) * kGoldenRatio;
  double left = (turns - std::floor(turns)) * sum;
  for (std::size_t i = 0; i + 1 < nics.size(); ++i) {
    left -= rate_of(wiring, server, nics[i]);
    if (left < 0) return i;
  }
  return nics.size() - 1;
}

/// The hop out of one NIC. Two servers with equally many NICs in a plane have pairs of them in their order. Of others, each NIC
/// of the one with fewer has a partner at the other, a different one for different pairs, so that all are used: fast ones more.
std::optional<Hop> hop_by(const GraphWiring& wiring, std::int64_t a, std::int64_t b, Rail rail) {
  const std::size_t nic = wiring.nic(a, rail);
  if (wiring.cable[nic] < 0) return std::nullopt;
  Hop hop{.from = static_cast<Rank>(a), .to = static_cast<Rank>(b), .out = rail, .in = rail, .level = 0};
  if (wiring.plane[nic] < 0) {
    const GraphLink& link = wiring.graph.links[static_cast<std::size_t>(wiring.cable[nic])];
    if (wiring.across(wiring.cable[nic], a) != b) return std::nullopt;
    hop.in = link.a == a ? link.b_port : link.a_port;
    return hop;
  }
  auto from = nics_in(wiring, a, wiring.plane[nic]), to = nics_in(wiring, b, wiring.plane[nic]);
  if (to.empty()) return std::nullopt;
  const bool more_at_a = from.size() > to.size();
  std::size_t shift = 0;
  if (from.size() != to.size()) {
    auto& more = more_at_a ? from : to;
    const std::int64_t server = more_at_a ? a : b;
    std::ranges::stable_sort(more, std::greater(), [&](Rail one) { return rate_of(wiring, server, one); });
    shift = first_partner(wiring, server, more, more_at_a ? b : a);
  }
  const auto at = static_cast<std::size_t>(std::ranges::find(from, rail) - from.begin());
  hop.in =
      more_at_a ? to[(at + from.size() - shift) % from.size() % to.size()] : to[(at + shift) % to.size()];
  return hop;
}

/// For each server that one reaches, the hop by which it is reached first.
std::vector<Hop> search(const GraphWiring& wiring, std::int64_t from) {
  std::vector<Hop> reached(static_cast<std::size_t>(wiring.num_servers));
  std::vector<bool> done(wiring.members.size(), false);
  std::vector<std::int64_t> order{from};
  reached[static_cast<std::size_t>(from)].to = static_cast<Rank>(from);
  const auto reach = [&](std::int64_t a, std::int64_t b, Rail out) {
    Hop& at = reached[static_cast<std::size_t>(b)];
    if (at.to >= 0) return;
    if (const auto hop = direct_hop(wiring, a, b, out)) {
      at = *hop;
      order.push_back(b);
    }
  };
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::int64_t server = order[i];
    for (Rail rail = 0; rail < wiring.num_rails; ++rail) {
      const std::size_t nic = wiring.nic(server, rail);
      if (wiring.cable[nic] < 0) continue;
      if (wiring.plane[nic] < 0) {
        reach(server, wiring.across(wiring.cable[nic], server), rail);
        continue;
      }
      // The members of a plane are all reached from the first of them.
      const auto plane = static_cast<std::size_t>(wiring.plane[nic]);
      if (done[plane]) continue;
      done[plane] = true;
      for (const std::int64_t other : wiring.members[plane]) reach(server, other, rail);
    }
  }
  return reached;
}

std::int64_t farthest_hops(const std::vector<Hop>& reached, std::int64_t from) {
  std::int64_t most = 0;
  for (std::size_t server = 0; server < reached.size(); ++server) {
    if (reached[server].to < 0) continue;
    std::int64_t hops = 0;
    for (auto at = static_cast<std::int64_t>(server); at != from;
         at = reached[static_cast<std::size_t>(at)].from)
      ++hops;
    most = std::max(most, hops);
  }
  return most;
}

/// NICs of all servers that lead to the same plane, with equally many NICs of that plane before them.
std::vector<Rail> common_rails(const GraphWiring& wiring) {
  const auto place_of = [&](std::int64_t server, Rail rail) {
    const std::int32_t plane = wiring.plane[wiring.nic(server, rail)];
    std::int32_t before = 0;
    for (Rail lower = 0; lower < rail; ++lower)
      before += wiring.plane[wiring.nic(server, lower)] == plane ? 1 : 0;
    return std::pair(plane, before);
  };
  std::vector<Rail> rails;
  for (Rail rail = 0; rail < wiring.num_rails; ++rail) {
    const auto place = place_of(0, rail);
    bool common = place.first >= 0;
    for (std::int64_t server = 1; server < wiring.num_servers && common; ++server)
      common = place_of(server, rail) == place;
    if (common) rails.push_back(rail);
  }
  return rails;
}

void find_diameter(GraphWiring& wiring) {
  const std::int64_t searched = wiring.num_servers <= kMostSearched ? wiring.num_servers : 1;
  for (std::int64_t server = 0; server < searched; ++server)
    wiring.diameter_hops = std::max(wiring.diameter_hops, farthest_hops(search(wiring, server), server));
  if (searched < wiring.num_servers) wiring.diameter_hops *= 2;
}

}  // namespace

Result<Topology> make_graph_topology(Graph graph) {
  GraphWiring wiring;
  wiring.graph = std::move(graph);
  wiring.num_servers = count_servers_of(wiring.graph);
  if (auto found = find_nics(wiring); !found) return fail(found.error());
  find_planes(wiring);
  Topology topology;
  topology.family = Family::kGraph;
  topology.num_rails = wiring.num_rails;
  topology.num_switches = static_cast<std::int64_t>(wiring.graph.nodes.size()) - wiring.num_servers;
  topology.num_links = static_cast<std::int64_t>(wiring.graph.links.size());
  topology.spec = "graph";
  topology.name = fmt::format("Graph({}, {})", counted(wiring.num_servers, "server"),
                              counted(topology.num_switches, "switch"));
  if (wiring.num_servers > 1) {
    Level level;
    level.name = "network";
    level.radix = wiring.num_servers;
    level.kind = LevelKind::kSwitch;
    level.rails = common_rails(wiring);
    topology.servers_relay = level.rails.empty();
    if (topology.servers_relay) {
      for (Rail rail = 0; rail < wiring.num_rails; ++rail) level.rails.push_back(rail);
      find_diameter(wiring);
    } else {
      wiring.diameter_hops = 1;
    }
    MostCommon<double> rates, latencies;
    for (const GraphLink& link : wiring.graph.links) {
      if (link.a < wiring.num_servers || link.b < wiring.num_servers) rates.add(link.bandwidth_bytes_per_s);
      latencies.add(link.latency_ns);
    }
    level.bandwidth_bytes_per_s = rates.value_or(kDefaultBandwidthBytesPerS);
    level.latency_ns = latencies.value_or(kDefaultLatencyNs);
    topology.levels.push_back(std::move(level));
  }
  topology.wiring.value = std::make_shared<const GraphWiring>(std::move(wiring));
  return topology;
}

std::optional<Hop> direct_hop(const GraphWiring& wiring, std::int64_t a, std::int64_t b, Rail out) {
  if (out != kNoRail) return hop_by(wiring, a, b, out);
  std::optional<Hop> any;
  for (Rail rail = 0; rail < wiring.num_rails; ++rail) {
    const auto hop = hop_by(wiring, a, b, rail);
    if (hop && is_two_way(wiring, *hop)) return hop;
    if (!any) any = hop;
  }
  return any;
}

bool is_two_way(const GraphWiring& wiring, const Hop& hop) {
  const auto back = hop_by(wiring, hop.to, hop.from, hop.in);
  return back && back->in == hop.out;
}

std::vector<Hop> graph_route(const GraphWiring& wiring, std::int64_t a, std::int64_t b, Rail out) {
  if (out != kNoRail)
    if (const auto hop = direct_hop(wiring, a, b, out)) return {*hop};
  if (const auto hop = direct_hop(wiring, a, b, kNoRail)) return {*hop};
  const auto reached = search(wiring, a);
  std::vector<Hop> route;
  if (reached[static_cast<std::size_t>(b)].to < 0) return route;
  for (std::int64_t at = b; at != a; at = route.back().from)
    route.push_back(reached[static_cast<std::size_t>(at)]);
  std::ranges::reverse(route);
  return route;
}

void visit_direct(const GraphWiring& wiring, std::int64_t server,
                  const std::function<void(const Hop&)>& see) {
  std::vector<std::int64_t> near;
  for (Rail rail = 0; rail < wiring.num_rails; ++rail) {
    const std::size_t nic = wiring.nic(server, rail);
    if (wiring.plane[nic] >= 0) {
      const auto& members = wiring.members[static_cast<std::size_t>(wiring.plane[nic])];
      near.insert(near.end(), members.begin(), members.end());
    } else if (wiring.cable[nic] >= 0) {
      near.push_back(wiring.across(wiring.cable[nic], server));
    }
  }
  std::ranges::sort(near);
  near.erase(std::unique(near.begin(), near.end()), near.end());
  for (const std::int64_t other : near) {
    if (other == server) continue;
    for (Rail rail = 0; rail < wiring.num_rails; ++rail)
      if (const auto hop = direct_hop(wiring, server, other, rail)) see(*hop);
  }
}

std::vector<std::pair<std::int64_t, bool>> switch_path(const GraphWiring& wiring, const Hop& hop) {
  std::vector<std::pair<std::int64_t, bool>> path;
  // From the lower server, so that the way back is the same.
  const bool turned = hop.from > hop.to;
  const std::int64_t low = turned ? hop.to : hop.from, high = turned ? hop.from : hop.to;
  const std::size_t low_nic = wiring.nic(low, turned ? hop.in : hop.out);
  const std::size_t high_nic = wiring.nic(high, turned ? hop.out : hop.in);
  if (wiring.plane[low_nic] < 0) return path;
  std::int64_t at = wiring.across(wiring.cable[low_nic], low);
  const std::int64_t end = wiring.across(wiring.cable[high_nic], high);
  if (at == end) return path;
  std::vector<std::int32_t> distance(wiring.graph.nodes.size(), -1);
  std::vector<std::int64_t> order{end};
  distance[static_cast<std::size_t>(end)] = 0;
  for (std::size_t i = 0; i < order.size() && distance[static_cast<std::size_t>(at)] < 0; ++i) {
    for (const std::int64_t link : wiring.of[static_cast<std::size_t>(order[i])]) {
      const std::int64_t other = wiring.across(link, order[i]);
      if (other < wiring.num_servers || distance[static_cast<std::size_t>(other)] >= 0) continue;
      distance[static_cast<std::size_t>(other)] = distance[static_cast<std::size_t>(order[i])] + 1;
      order.push_back(other);
    }
  }
  std::size_t choice = spread(low, high);
  while (at != end) {
    std::vector<std::int64_t> closer;
    for (const std::int64_t link : wiring.of[static_cast<std::size_t>(at)]) {
      const std::int64_t other = wiring.across(link, at);
      if (other >= wiring.num_servers &&
          distance[static_cast<std::size_t>(other)] == distance[static_cast<std::size_t>(at)] - 1)
        closer.push_back(link);
    }
    const std::int64_t link = closer[choice % closer.size()];
    choice /= closer.size();
    path.emplace_back(link, (wiring.graph.links[static_cast<std::size_t>(link)].a == at) != turned);
    at = wiring.across(link, at);
  }
  if (turned) std::ranges::reverse(path);
  return path;
}

}  // namespace hips::topology

namespace hips {

bool operator==(const WiringOfGraph& a, const WiringOfGraph& b) {
  if (a.value == b.value) return true;
  if (!a.value || !b.value) return false;
  const auto same_node = [](const GraphNode& x, const GraphNode& y) {
    return x.is_switch == y.is_switch && x.id == y.id && (!x.is_switch || x.name == y.name);
  };
  const auto same_link = [](const GraphLink& x, const GraphLink& y) {
    return x.a == y.a && x.b == y.b && x.a_port == y.a_port && x.b_port == y.b_port &&
           x.bandwidth_bytes_per_s == y.bandwidth_bytes_per_s && x.latency_ns == y.latency_ns && x.up == y.up;
  };
  return std::ranges::equal(a.value->graph.nodes, b.value->graph.nodes, same_node) &&
         std::ranges::equal(a.value->graph.links, b.value->graph.links, same_link);
}

}  // namespace hips
