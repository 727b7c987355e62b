#include "lib/comm/setup/wiring.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/comm/setup/transport_registry.hpp"
#include "topology/discover/recognise.hpp"
#include "topology/formats/parse.hpp"

namespace hips::comm {
namespace {

using topology::Match;
using topology::Segments;

/// The ranks of the nodes, and the NICs of each node.
struct Nodes {
  std::string_view transport;
  std::vector<std::vector<Rank>> ranks;
  std::vector<std::span<const NicInfo>> nics;

  /// The same number of ranks on each node, those of node n before those of node n + 1.
  [[nodiscard]] bool in_order() const {
    Rank next = 0;
    for (const auto& node : ranks) {
      if (node.size() != ranks.front().size()) return false;
      for (const Rank rank : node)
        if (rank != next++) return false;
    }
    return true;
  }
};

bool same_nics(std::span<const NicInfo> a, std::span<const NicInfo> b) {
  return std::ranges::equal(a, b, {}, &NicInfo::name, &NicInfo::name);
}

/// None if there is one node, or two nodes have no transport with NICs in common, or not the same as others.
std::optional<Nodes> nodes_of(std::string_view transport, const std::vector<ProcessInfo>& processes) {
  Nodes nodes;
  std::map<std::string_view, std::size_t> known;
  for (std::size_t r = 0; r < processes.size(); ++r) {
    const auto [at, is_new] = known.emplace(processes[r].node_key, nodes.ranks.size());
    if (is_new) nodes.ranks.emplace_back();
    nodes.ranks[at->second].push_back(static_cast<Rank>(r));
  }
  if (nodes.ranks.size() < 2) return std::nullopt;
  const auto process_of = [&](std::size_t node) -> const ProcessInfo& {
    return processes[static_cast<std::size_t>(nodes.ranks[node].front())];
  };
  const TransportEntry* entry = nullptr;
  for (std::size_t node = 1; node < nodes.ranks.size(); ++node) {
    const TransportEntry* const other = transport_between(transport, process_of(0), process_of(node));
    if (other == nullptr || (entry != nullptr && other != entry)) return std::nullopt;
    entry = other;
  }
  nodes.transport = entry->name;
  for (std::size_t node = 0; node < nodes.ranks.size(); ++node) {
    const auto nics = nodes.nics.emplace_back(entry->nics(process_of(node)));
    if (nics.empty()) return std::nullopt;
    for (const Rank rank : nodes.ranks[node])
      if (!same_nics(nics, entry->nics(processes[static_cast<std::size_t>(rank)]))) return std::nullopt;
  }
  return nodes;
}

/// The NICs by node and subnet, without those that lead to no other node.
topology::Observation observe(const Nodes& nodes) {
  std::map<std::string_view, std::size_t> times;
  for (const auto& nics : nodes.nics) {
    std::set<std::string_view> here;
    for (const NicInfo& nic : nics)
      if (!nic.address.empty() && here.insert(nic.address).second) ++times[nic.address];
  }
  topology::Observation seen;
  for (const auto& nics : nodes.nics) {
    topology::SeenServer& server = seen.servers.emplace_back();
    const bool any_known =
        std::ranges::any_of(nics, [](const NicInfo& nic) { return nic.bandwidth_bytes_per_s > 0; });
    std::set<std::string_view> devices;
    for (const NicInfo& nic : nics) {
      const bool in_several_nodes = !nic.address.empty() && times[nic.address] > 1;
      const bool is_tunnel = any_known && nic.bandwidth_bytes_per_s == 0;
      const bool is_used = !in_several_nodes && !is_tunnel && devices.insert(nic.device).second;
      server.nics.push_back({.name = nic.name,
                             .address = nic.address,
                             .subnet = is_used ? nic.subnet : std::string(),
                             .bandwidth_bytes_per_s = nic.bandwidth_bytes_per_s});
    }
  }
  return seen;
}

/// The segments that have a NIC of every node.
Segments only_spanning(const Segments& seen) {
  Segments rest = seen;
  for (const auto& members : seen.members) {
    std::set<std::size_t> servers;
    for (const topology::NicId& member : members) servers.insert(member.first);
    if (servers.size() == seen.num_servers()) continue;
    for (const auto& [server, nic] : members) rest.of[server][nic] = Segments::kNone;
  }
  rest.compact();
  return rest;
}

/// A rail of a rack: its NIC on each node, and what is known of it.
struct RackRail {
  std::vector<std::int32_t> nic_of;  ///< by node
  double bandwidth = 0;              ///< the least of any node
  std::int32_t mtu = 0;              ///< the least of any node
  bool named_by_node = false;        ///< on any node
};

std::vector<RackRail> rails_of(const Match& rack, const Nodes& nodes) {
  std::vector<RackRail> rails(static_cast<std::size_t>(std::max<Rail>(1, rack.topology.num_rails)));
  for (std::size_t rail = 0; rail < rails.size(); ++rail) {
    RackRail& one = rails[rail];
    for (std::size_t node = 0; node < nodes.nics.size(); ++node) {
      one.nic_of.push_back(rack.placement.nic_of[node][rail]);
      const NicInfo& nic = nodes.nics[node][static_cast<std::size_t>(one.nic_of.back())];
      one.bandwidth =
          node == 0 ? nic.bandwidth_bytes_per_s : std::min(one.bandwidth, nic.bandwidth_bytes_per_s);
      one.mtu = node == 0 ? nic.mtu : std::min(one.mtu, nic.mtu);
      one.named_by_node = one.named_by_node || nic.named_by_node;
    }
  }
  return rails;
}

/// Keeps the rails that together are fastest if each gets an equal share, without the network of the nodes' names unless it is
/// needed.
std::vector<RackRail> fastest(std::vector<RackRail> rails) {
  std::vector<RackRail> others;
  std::ranges::copy_if(rails, std::back_inserter(others),
                       [](const RackRail& rail) { return !rail.named_by_node; });
  std::int32_t most_mtu = 0;
  for (const RackRail& rail : others) most_mtu = std::max(most_mtu, rail.mtu);
  // Networks for data have large packets more often than those for logins.
  const bool smaller = std::ranges::all_of(
      rails, [&](const RackRail& rail) { return !rail.named_by_node || rail.mtu < most_mtu; });
  if (others.size() >= 2 || (!others.empty() && smaller)) rails = std::move(others);
  const auto total_of_first = [](const std::vector<double>& rates, std::size_t count) {
    return static_cast<double>(count) * rates[count - 1];
  };
  std::vector<double> rates;
  for (const RackRail& rail : rails) rates.push_back(rail.bandwidth);
  std::ranges::sort(rates, std::greater<>());
  std::size_t best = 1;
  for (std::size_t count = 2; count <= rates.size(); ++count)
    if (total_of_first(rates, count) >= total_of_first(rates, best)) best = count;
  const double least = rates[best - 1];
  std::erase_if(rails, [&](const RackRail& rail) { return rail.bandwidth < least; });
  return rails;
}

std::optional<Match> rack_of(const Segments& seen, const Nodes& nodes) {
  auto match = topology::match_rack(only_spanning(seen));
  if (!match) return std::nullopt;
  const std::vector<RackRail> rails = fastest(rails_of(*match, nodes));
  const std::size_t servers = seen.num_servers();
  auto topology = topology::parse(rails.size() == 1 ? fmt::format("switch:{}", servers)
                                                    : fmt::format("rail:{},{}", servers, rails.size()));
  if (!topology) return std::nullopt;
  match->topology = *std::move(topology);
  for (std::size_t node = 0; node < servers; ++node) {
    match->placement.nic_of[node].clear();
    for (const RackRail& rail : rails) match->placement.nic_of[node].push_back(rail.nic_of[node]);
  }
  return match;
}

/// A family in which not every two nodes share a network. Its servers must be the nodes in their order.
std::optional<Match> server_centric_of(const Segments& seen) {
  const Segments rest = topology::without_spanning(seen);
  auto match = topology::match_server_centric(rest);
  if (!match) match = topology::match_bcube_part(rest);
  if (!match || !std::ranges::is_sorted(match->placement.server_of)) return std::nullopt;
  return match;
}

double rate_of(const Match& match, const Nodes& nodes) {
  double total = 0;
  for (const std::int32_t nic : match.placement.nic_of.front())
    if (nic >= 0) total += nodes.nics.front()[static_cast<std::size_t>(nic)].bandwidth_bytes_per_s;
  return total;
}

}  // namespace

std::optional<NodeWiring> wiring_of(std::string_view transport, const std::vector<ProcessInfo>& processes) {
  const auto nodes = nodes_of(transport, processes);
  if (!nodes) return std::nullopt;
  const Segments seen = topology::segments_of(observe(*nodes)).segments;
  auto rack = rack_of(seen, *nodes);
  std::optional<Match> match = nodes->in_order() ? server_centric_of(seen) : std::nullopt;
  if (!match || (rack && rate_of(*rack, *nodes) > rate_of(*match, *nodes))) match = std::move(rack);
  if (!match) return std::nullopt;
  NodeWiring wiring;
  wiring.transport = nodes->transport;
  wiring.nodes = std::move(match->topology);
  const std::size_t per_node = nodes->ranks.front().size();
  const std::string& spec = wiring.nodes.spec;
  auto topology =
      nodes->in_order()
          ? topology::parse(per_node == 1 ? spec : fmt::format("{}/{}", spec, per_node))
          : topology::parse(wiring.nodes.num_rails <= 1
                                ? fmt::format("switch:{}", processes.size())
                                : fmt::format("rail:{},{}", processes.size(), wiring.nodes.num_rails));
  if (!topology) return std::nullopt;
  wiring.topology = *std::move(topology);
  // Whether servers forward for others does not show.
  for (Topology* each : {&wiring.nodes, &wiring.topology}) each->relay_off = each->servers_relay;
  wiring.nics.resize(processes.size());
  for (std::size_t node = 0; node < nodes->ranks.size(); ++node) {
    std::vector<std::uint32_t> nics;
    for (const std::int32_t nic : match->placement.nic_of[node])
      nics.push_back(static_cast<std::uint32_t>(std::max(0, nic)));  // a rail without a NIC carries nothing
    for (const Rank rank : nodes->ranks[node]) wiring.nics[static_cast<std::size_t>(rank)] = nics;
  }
  std::set<std::string> names;
  for (std::size_t node = 0; node < nodes->ranks.size(); ++node)
    for (const std::int32_t nic : match->placement.nic_of[node])
      if (nic >= 0) names.insert(nodes->nics[node][static_cast<std::size_t>(nic)].name);
  wiring.text = fmt::format("{} over {}", wiring.nodes.spec, fmt::join(names, ", "));
  return wiring;
}

}  // namespace hips::comm
