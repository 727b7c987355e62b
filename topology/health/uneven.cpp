#include "topology/health/uneven.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "topology/most_common.hpp"

namespace hips::topology {
namespace {

using Pair = std::pair<std::size_t, std::size_t>;

/// The pairs of switches of a tier and the next, and how many cables join them.
struct TierPairs {
  std::vector<std::size_t> lower, upper;
  std::map<Pair, std::size_t> cables;

  [[nodiscard]] bool is_nearly_complete() const {
    return !cables.empty() && 4 * cables.size() >= 3 * lower.size() * upper.size();
  }
};

TierPairs pairs_of(const Cabling& cabling, const CableTiers& tiers, std::size_t tier) {
  TierPairs pairs;
  for (std::size_t node = 0; node < cabling.nodes.size(); ++node) {
    if (tiers.of[node] == tier) pairs.lower.push_back(node);
    if (tiers.of[node] == tier + 1) pairs.upper.push_back(node);
  }
  for (const Cable& cable : cabling.cables) {
    std::size_t lower = cable.a.node, upper = cable.b.node;
    if (tiers.of[lower] > tiers.of[upper]) std::swap(lower, upper);
    if (tiers.of[lower] == tier && tiers.of[upper] == tier + 1) ++pairs.cables[{lower, upper}];
  }
  return pairs;
}

/// The entries whose count is not the most common one.
std::vector<Uneven> those_unlike(std::vector<Uneven> all) {
  MostCommon<std::size_t> counts;
  for (const Uneven& one : all) counts.add(one.count);
  const std::size_t usual = counts.value_or(0);
  std::erase_if(all, [&](const Uneven& one) { return one.count == usual; });
  for (Uneven& one : all) one.usual = usual;
  return all;
}

}  // namespace

std::vector<SwitchLoad> switch_loads(const Cabling& cabling, const CableTiers& tiers,
                                     const std::vector<OddCable>& odd) {
  std::map<std::size_t, double> usual;
  for (const OddCable& one : odd) usual[one.cable] = one.usual_bytes_per_s;
  const auto of = cables_by_node(cabling);
  std::vector<SwitchLoad> loads;
  for (std::size_t node = 0; node < cabling.nodes.size(); ++node) {
    if (tiers.of[node] == 0 || tiers.of[node] == SIZE_MAX) continue;
    SwitchLoad load{.node = node};
    std::set<std::size_t> servers;
    for (const std::size_t number : of[node]) {
      const Cable& cable = cabling.cables[number];
      const std::size_t other = node_across(cable, node);
      if (tiers.of[other] == 0) servers.insert(other);
      if (!cable.up || tiers.of[other] == tiers.of[node]) continue;
      const bool is_below = tiers.of[other] < tiers.of[node];
      ++(is_below ? load.below : load.above);
      double rate = cable.bandwidth_bytes_per_s;
      if (const auto found = usual.find(number); is_below && found != usual.end())
        rate = std::max(rate, found->second);
      (is_below ? load.below_bytes_per_s : load.above_bytes_per_s) += rate;
    }
    load.servers = servers.size();
    loads.push_back(load);
  }
  return loads;
}

std::vector<Uneven> uneven_leaves(const std::vector<SwitchLoad>& loads, const CableTiers& tiers) {
  std::vector<Uneven> leaves;
  for (const SwitchLoad& load : loads)
    if (tiers.of[load.node] == 1) leaves.push_back({load.node, load.servers});
  return those_unlike(std::move(leaves));
}

std::vector<Uneven> uneven_uplinks(const Cabling& cabling, const CableTiers& tiers,
                                   const std::vector<SwitchLoad>& loads) {
  std::vector<Uneven> result;
  for (std::size_t tier = 1; tier < tiers.highest; ++tier) {
    const TierPairs pairs = pairs_of(cabling, tiers, tier);
    if (pairs.is_nearly_complete()) continue;
    std::map<std::size_t, std::size_t> above;
    for (const auto& [pair, count] : pairs.cables) above[pair.first] += count;
    std::vector<Uneven> of_tier;
    for (const SwitchLoad& load : loads)
      if (tiers.of[load.node] == tier) of_tier.push_back({load.node, above[load.node]});
    const auto unlike = those_unlike(std::move(of_tier));
    result.insert(result.end(), unlike.begin(), unlike.end());
  }
  return result;
}

std::vector<MissingCables> missing_cables(const Cabling& cabling, const CableTiers& tiers) {
  std::vector<MissingCables> result;
  for (std::size_t tier = 1; tier < tiers.highest; ++tier) {
    const TierPairs pairs = pairs_of(cabling, tiers, tier);
    if (!pairs.is_nearly_complete()) continue;
    MostCommon<std::size_t> counts;
    for (const auto& [pair, count] : pairs.cables) counts.add(count);
    const std::size_t usual = counts.value_or(0);
    for (const std::size_t lower : pairs.lower) {
      for (const std::size_t upper : pairs.upper) {
        const auto found = pairs.cables.find({lower, upper});
        const std::size_t count = found == pairs.cables.end() ? 0 : found->second;
        if (count < usual) result.push_back({lower, upper, count, usual});
      }
    }
  }
  return result;
}

std::vector<Uneven> servers_with_fewer_nics(const Cabling& cabling) {
  const auto of = cables_by_node(cabling);
  std::vector<Uneven> servers;
  for (std::size_t node = 0; node < cabling.nodes.size(); ++node)
    if (cabling.nodes[node].kind == CabledNode::Kind::kServer) servers.push_back({node, of[node].size()});
  servers = those_unlike(std::move(servers));
  std::erase_if(servers, [](const Uneven& one) { return one.count > one.usual; });
  return servers;
}

}  // namespace hips::topology
