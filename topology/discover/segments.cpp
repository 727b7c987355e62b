#include "topology/discover/segments.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "topology/union_find.hpp"

namespace hips::topology {
namespace {

/// The observed paths between two NICs, in both directions.
struct PairPath {
  bool reached = false;
  std::int32_t hops = 0;
};

std::map<std::pair<NicId, NicId>, PairPath> paths_of(const Observation& seen) {
  std::map<std::pair<NicId, NicId>, PairPath> paths;
  for (const SeenPath& path : seen.paths) {
    const NicId a{path.a, path.a_nic}, b{path.b, path.b_nic};
    auto [at, is_new] = paths.try_emplace(std::minmax(a, b), PairPath{path.reached, path.hops});
    if (is_new) continue;
    // Data needs both directions.
    at->second.reached = at->second.reached && path.reached;
    at->second.hops = std::max(at->second.hops, path.hops);
  }
  return paths;
}

/// The number of pairs of NICs of different servers.
std::size_t pairs_in(const std::vector<NicId>& nics) {
  std::map<std::size_t, std::size_t> by_server;
  for (const NicId& nic : nics) ++by_server[nic.first];
  std::size_t pairs = nics.size() * (nics.size() - 1) / 2;
  for (const auto& [server, count] : by_server) pairs -= count * (count - 1) / 2;
  return pairs;
}

}  // namespace

std::size_t Segments::degree(std::size_t server) const {
  const auto& nics = of[server];
  return nics.size() - static_cast<std::size_t>(std::ranges::count(nics, kNone));
}

void Segments::compact() {
  std::map<std::int32_t, std::vector<NicId>> by_number;
  std::vector<std::int32_t> order;
  for (std::size_t server = 0; server < of.size(); ++server) {
    for (std::size_t nic = 0; nic < of[server].size(); ++nic) {
      const std::int32_t segment = of[server][nic];
      if (segment == kNone) continue;
      auto& nics = by_number[segment];
      if (nics.empty()) order.push_back(segment);
      nics.emplace_back(server, nic);
    }
  }
  members.clear();
  for (const std::int32_t old : order) {
    auto& nics = by_number[old];
    const bool several = nics.front().first != nics.back().first;
    for (const auto& [server, nic] : nics)
      of[server][nic] = several ? static_cast<std::int32_t>(members.size()) : kNone;
    if (several) members.push_back(std::move(nics));
  }
}

SeenSegments segments_of(const Observation& seen) {
  SeenSegments result;
  Segments& segments = result.segments;
  std::map<std::string, std::vector<NicId>> subnets;
  for (std::size_t server = 0; server < seen.servers.size(); ++server) {
    const auto& nics = seen.servers[server].nics;
    segments.of.emplace_back(nics.size(), Segments::kNone);
    for (std::size_t nic = 0; nic < nics.size(); ++nic)
      if (!nics[nic].subnet.empty()) subnets[nics[nic].subnet].emplace_back(server, nic);
  }
  // The observed paths inside each subnet.
  std::map<std::string, std::vector<std::pair<std::pair<NicId, NicId>, PairPath>>> tried_in;
  for (const auto& [pair, path] : paths_of(seen)) {
    const auto subnet_of = [&](const NicId& nic) -> const std::string& {
      return seen.servers[nic.first].nics[nic.second].subnet;
    };
    const std::string& subnet = subnet_of(pair.first);
    if (!subnet.empty() && subnet == subnet_of(pair.second) && pair.first.first != pair.second.first)
      tried_in[subnet].emplace_back(pair, path);
  }
  std::int32_t next = 0;
  for (const auto& [subnet, nics] : subnets) {
    const auto place = [&list = nics](const NicId& nic) {
      return static_cast<std::size_t>(std::ranges::lower_bound(list, nic) - list.begin());
    };
    UnionFind groups(nics.size());
    std::vector<std::size_t> tried(nics.size()), reached(nics.size());
    for (const auto& [pair, path] : tried_in[subnet]) {
      const std::size_t i = place(pair.first), j = place(pair.second);
      ++tried[i], ++tried[j];
      if (!path.reached) continue;
      ++reached[i], ++reached[j], ++result.num_reached;
      if (path.hops > 1) ++result.num_routed;
      groups.join(i, j);
    }
    result.num_untried += pairs_in(nics) - tried_in[subnet].size();
    // Groups of NICs that reach each other. NICs that reach none of those tried are down.
    std::map<std::size_t, std::size_t> sizes;
    for (std::size_t i = 0; i < nics.size(); ++i) ++sizes[groups.find(i)];
    const auto num_groups = std::ranges::count_if(sizes, [](const auto& one) { return one.second > 1; });
    std::map<std::size_t, std::int32_t> number;
    for (std::size_t i = 0; i < nics.size(); ++i) {
      if (tried[i] > 0 && reached[i] == 0) result.down.insert(nics[i]);
      // Untried pairs are judged by the subnet: with one group, or none, all NICs are in one segment.
      const std::size_t group = num_groups > 1 ? groups.find(i) : 0;
      const auto [at, is_new] = number.try_emplace(group, next);
      if (is_new) ++next;
      segments.of[nics[i].first][nics[i].second] = at->second;
    }
  }
  segments.compact();
  return result;
}

Segments segments_of(const Topology& topology) {
  const Graph graph = topology.graph();
  const auto num_servers = static_cast<std::size_t>(topology.num_servers());
  UnionFind switches(graph.nodes.size());
  for (const GraphLink& link : graph.links) {
    const auto a = static_cast<std::size_t>(link.a), b = static_cast<std::size_t>(link.b);
    if (graph.nodes[a].is_switch && graph.nodes[b].is_switch) switches.join(a, b);
  }
  Segments segments;
  segments.of.assign(
      num_servers, std::vector<std::int32_t>(static_cast<std::size_t>(topology.num_rails), Segments::kNone));
  // Cables between servers get numbers after those of the switches.
  auto next = static_cast<std::int32_t>(graph.nodes.size());
  for (const GraphLink& link : graph.links) {
    const auto a = static_cast<std::size_t>(link.a), b = static_cast<std::size_t>(link.b);
    const bool a_server = !graph.nodes[a].is_switch, b_server = !graph.nodes[b].is_switch;
    if (!a_server && !b_server) continue;
    const std::int32_t number =
        a_server && b_server ? next++ : static_cast<std::int32_t>(switches.find(a_server ? b : a));
    if (a_server) segments.of[a][static_cast<std::size_t>(link.a_port)] = number;
    if (b_server) segments.of[b][static_cast<std::size_t>(link.b_port)] = number;
  }
  segments.compact();
  return segments;
}

}  // namespace hips::topology
