#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "topology/discover/recognise.hpp"
#include "topology/formats/parse.hpp"

// Wirings with routers between subnets, of which only the hops are visible.

namespace hips::topology {
namespace {

/// The hops between two subnets; 0 if some pair of NICs does not reach each other, or none was tried.
class SubnetHops {
 public:
  explicit SubnetHops(const Observation& seen) {
    const auto subnet = [&](std::size_t server, std::size_t nic) -> const std::string& {
      return seen.servers[server].nics[nic].subnet;
    };
    for (const SeenPath& path : seen.paths) {
      const std::string &a = subnet(path.a, path.a_nic), &b = subnet(path.b, path.b_nic);
      if (a == b || a.empty() || b.empty()) continue;
      auto [at, is_new] = hops_.try_emplace(std::minmax(a, b), path.reached ? std::max(path.hops, 1) : 0);
      if (is_new || at->second == 0) continue;
      at->second = path.reached ? std::max(at->second, path.hops) : 0;
    }
  }
  [[nodiscard]] std::int32_t between(const std::string& a, const std::string& b) const {
    const auto found = hops_.find(std::minmax(a, b));
    return found == hops_.end() ? 0 : found->second;
  }

 private:
  std::map<std::pair<std::string, std::string>, std::int32_t> hops_;
};

/// Do all subnets reach each other, directly or through others?
bool all_joined(const std::vector<std::string>& subnets, const SubnetHops& hops) {
  std::set<std::string> seen{subnets.front()};
  std::vector<std::string> front{subnets.front()};
  while (!front.empty()) {
    const std::string at = front.back();
    front.pop_back();
    for (const std::string& other : subnets)
      if (hops.between(at, other) > 0 && seen.insert(other).second) front.push_back(other);
  }
  return std::ranges::all_of(subnets, [&](const std::string& one) { return seen.contains(one); });
}

/// Groups leaves in pods: leaves in a pod are fewer hops apart. None if these are not groups of equal size.
std::optional<std::vector<std::vector<std::size_t>>> pods_of(const std::vector<std::string>& leaves,
                                                             const SubnetHops& hops) {
  std::set<std::int32_t> distances;
  for (std::size_t i = 0; i < leaves.size(); ++i)
    for (std::size_t j = i + 1; j < leaves.size(); ++j) distances.insert(hops.between(leaves[i], leaves[j]));
  if (distances.contains(0) || distances.size() > 2) return std::nullopt;
  std::vector<std::vector<std::size_t>> pods;
  const std::int32_t near = distances.size() == 2 ? *distances.begin() : 0;
  for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    const auto pod = std::ranges::find_if(
        pods, [&](const auto& one) { return hops.between(leaves[one.front()], leaves[leaf]) == near; });
    if (pod == pods.end()) {
      pods.push_back({leaf});
      continue;
    }
    for (const std::size_t other : *pod)
      if (hops.between(leaves[other], leaves[leaf]) != near) return std::nullopt;
    pod->push_back(leaf);
  }
  const bool equal = std::ranges::all_of(pods, [&](const auto& one) { return one.size() == pods[0].size(); });
  return equal ? std::optional(pods) : std::nullopt;
}

}  // namespace

std::optional<Match> match_tree(const Observation& seen) {
  // One NIC each, by subnet.
  std::map<std::string, std::vector<NicId>> by_subnet;
  std::vector<std::string> leaves;
  for (std::size_t server = 0; server < seen.servers.size(); ++server) {
    const auto& nics = seen.servers[server].nics;
    const auto has_subnet = [](const SeenNic& nic) { return !nic.subnet.empty(); };
    if (std::ranges::count_if(nics, has_subnet) != 1) return std::nullopt;
    const auto nic = static_cast<std::size_t>(std::ranges::find_if(nics, has_subnet) - nics.begin());
    auto& members = by_subnet[nics[nic].subnet];
    if (members.empty()) leaves.push_back(nics[nic].subnet);
    members.emplace_back(server, nic);
  }
  const std::size_t size = by_subnet[leaves.front()].size();
  if (leaves.size() < 2 ||
      std::ranges::any_of(by_subnet, [&](const auto& one) { return one.second.size() != size; }))
    return std::nullopt;
  const auto pods = pods_of(leaves, SubnetHops(seen));
  if (!pods) return std::nullopt;
  const std::size_t in_pod = pods->front().size();
  const bool fat_tree = in_pod == size && pods->size() == 2 * size && in_pod > 1;
  auto topology = parse(fat_tree ? fmt::format("fattree:{}", 2 * size)
                                 : fmt::format("leafspine:{},{}", leaves.size(), size));
  if (!topology) return std::nullopt;
  Match match{*std::move(topology), {}, {}};
  for (const auto& pod : *pods) {
    for (const std::size_t leaf : pod) {
      for (const auto& [server, nic] : by_subnet[leaves[leaf]]) {
        match.placement.server_of.push_back(server);
        match.placement.nic_of.push_back({static_cast<std::int32_t>(nic)});
      }
    }
  }
  return match;
}

std::optional<Match> match_routed_rack(const Observation& seen) {
  const SubnetHops hops(seen);
  std::vector<std::size_t> rails;
  std::size_t num_nics = SIZE_MAX;
  for (const SeenServer& server : seen.servers) num_nics = std::min(num_nics, server.nics.size());
  bool routed = false;
  for (std::size_t nic = 0; nic < num_nics; ++nic) {
    std::set<std::string> subnets;
    for (const SeenServer& server : seen.servers) subnets.insert(server.nics[nic].subnet);
    if (subnets.contains("")) continue;
    if (!all_joined({subnets.begin(), subnets.end()}, hops)) continue;
    routed = routed || subnets.size() > 1;
    rails.push_back(nic);
  }
  if (rails.empty() || !routed) return std::nullopt;
  const std::size_t servers = seen.servers.size();
  auto topology = parse(rails.size() == 1 ? fmt::format("switch:{}", servers)
                                          : fmt::format("rail:{},{}", servers, rails.size()));
  if (!topology) return std::nullopt;
  Match match{*std::move(topology), {}, {}};
  for (std::size_t server = 0; server < servers; ++server) {
    match.placement.server_of.push_back(server);
    match.placement.nic_of.emplace_back(rails.begin(), rails.end());
  }
  return match;
}

}  // namespace hips::topology
