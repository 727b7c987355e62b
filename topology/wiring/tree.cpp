#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "topology/formats/parse.hpp"
#include "topology/most_common.hpp"
#include "topology/union_find.hpp"
#include "topology/wiring/layout.hpp"

namespace hips::topology {
namespace {

/// A switch with servers, in their order. None in some leaf switches that join only switches that leaf switches with servers join.
struct LeafSwitch {
  std::size_t node = 0;
  std::vector<std::size_t> servers;
};

/// Leaf switches, and what joins them below the cores.
struct Pod {
  std::vector<std::size_t> leaves;  ///< indices of the leaf switches
  std::vector<std::size_t> aggregations;
};

class TreeLayout {
 public:
  explicit TreeLayout(const ServerWiring& wiring) : wiring_(wiring) {}

  std::vector<FamilyLayout> make() {
    for (std::size_t server = 0; server < wiring_.num_servers; ++server) {
      if (wiring_.of[server].size() != 1 || wiring_.is_server(wiring_.across(wiring_.of[server][0], server)))
        return {};
    }
    const auto tiers = tiers_of(wiring_);
    for (std::size_t node = wiring_.num_servers; node < wiring_.size(); ++node) {
      if (tiers[node] > 3) return {};
      tiers_[tiers[node]].push_back(node);
    }
    tier_ = tiers;
    find_leaves();
    if (leaves_.size() < 2 || tiers_[1].empty()) return {};
    find_pods();
    add_leaves_without_servers();
    if (tiers_[2].empty()) return leaf_spine();
    return fat_tree();
  }

 private:
  void find_leaves() {
    std::map<std::size_t, std::size_t> leaf_of;
    for (std::size_t server = 0; server < wiring_.num_servers; ++server) {
      const std::size_t node = wiring_.across(wiring_.of[server][0], server);
      const auto [leaf, is_new] = leaf_of.try_emplace(node, leaves_.size());
      if (is_new) leaves_.push_back({node, {}});
      leaves_[leaf->second].servers.push_back(server);
      most_servers_ = std::max(most_servers_, leaves_[leaf->second].servers.size());
    }
  }

  /// The switches of a tier that a switch has cables to.
  [[nodiscard]] std::vector<std::size_t> near(std::size_t node, std::size_t tier) const {
    std::vector<std::size_t> found;
    for (const std::size_t cable : wiring_.of[node]) {
      const std::size_t other = wiring_.across(cable, node);
      if (!wiring_.is_server(other) && tier_[other] == tier) found.push_back(other);
    }
    return found;
  }

  void find_pods() {
    UnionFind joined(wiring_.size());
    for (const std::size_t node : tiers_[1])
      for (const std::size_t leaf : near(node, 0)) joined.join(node, leaf);
    std::map<std::size_t, std::size_t> pod_of;
    for (std::size_t leaf = 0; leaf < leaves_.size(); ++leaf) {
      const auto [pod, is_new] = pod_of.try_emplace(joined.find(leaves_[leaf].node), pods_.size());
      if (is_new) pods_.emplace_back();
      pods_[pod->second].leaves.push_back(leaf);
    }
    for (const std::size_t node : tiers_[1]) {
      pod_at_[node] = pod_of.at(joined.find(node));
      pods_[pod_at_[node]].aggregations.push_back(node);
    }
  }

  /// A switch above those of one pod only is no core, which would join pods, unless all but one of its cables are missing.
  void add_leaves_without_servers() {
    std::erase_if(tiers_[2], [&](std::size_t node) {
      const auto above = near(node, 1);
      const std::size_t pod = pod_at_.at(above.front());
      if (wiring_.of[node].size() == 1 && pods_.size() > 1) return false;
      if (std::ranges::any_of(above, [&](std::size_t other) { return pod_at_.at(other) != pod; }))
        return false;
      pods_[pod].leaves.push_back(leaves_.size());
      leaves_.push_back({node, {}});
      tier_[node] = 0;
      return true;
    });
  }

  static FamilyLayout empty_layout(Topology whole) {
    FamilyLayout layout;
    const auto nodes = whole.num_whole_servers() + whole.num_switches;
    layout.seen.assign(static_cast<std::size_t>(nodes), -1);
    layout.whole = std::move(whole);
    return layout;
  }

  void put_servers(FamilyLayout& layout, const LeafSwitch& leaf, std::size_t first) const {
    for (std::size_t i = 0; i < leaf.servers.size(); ++i)
      layout.seen[first + i] = static_cast<std::int64_t>(leaf.servers[i]);
  }

  /// Leaf switches with fewer servers, or fewer servers than spines, have places without servers.
  std::vector<FamilyLayout> leaf_spine() {
    if (!tiers_[3].empty()) return {};
    const std::size_t spines = tiers_[1].size(), below = std::max(most_servers_, spines);
    auto topology = parse(fmt::format("leafspine:{},{},{}", leaves_.size(), below, spines));
    if (!topology) return {};
    FamilyLayout layout = empty_layout(*std::move(topology));
    std::size_t next = leaves_.size() * below;
    for (std::size_t leaf = 0; leaf < leaves_.size(); ++leaf) {
      put_servers(layout, leaves_[leaf], leaf * below);
      layout.seen[next++] = static_cast<std::int64_t>(leaves_[leaf].node);
    }
    for (const std::size_t spine : tiers_[1]) layout.seen[next++] = static_cast<std::int64_t>(spine);
    return {std::move(layout)};
  }

  /// Groups of cores with cables to the same aggregation switches: cores of group i are above aggregation switch i of
  /// each pod. Cores of one group share a switch in most pods.
  std::map<std::size_t, std::size_t> groups_of_cores() {
    // The pod with most cables upwards knows best.
    const Pod* first = nullptr;
    std::size_t most = 0;
    for (const Pod& pod : pods_) {
      std::size_t cables = 0;
      for (const std::size_t node : pod.aggregations) cables += near(node, 2).size();
      if (cables > most) first = &pod;
      most = std::max(most, cables);
    }
    std::map<std::size_t, std::size_t> group_of;
    if (first == nullptr) return group_of;
    for (std::size_t i = 0; i < first->aggregations.size(); ++i)
      for (const std::size_t core : near(first->aggregations[i], 2)) group_of.try_emplace(core, i);
    for (const std::size_t core : tiers_[2]) {
      if (group_of.contains(core)) continue;
      MostCommon<std::size_t> votes;
      for (const std::size_t aggregation : near(core, 1)) {
        for (const std::size_t other : near(aggregation, 2)) {
          const auto known = group_of.find(other);
          if (known != group_of.end()) votes.add(known->second);
        }
      }
      const std::size_t group = votes.value_or(SIZE_MAX);
      if (group != SIZE_MAX) group_of[core] = group;
    }
    return group_of;
  }

  using CoreGroups = std::map<std::size_t, std::size_t>;

  /// The group of the cores above an aggregation switch; SIZE_MAX: none is known.
  [[nodiscard]] std::size_t group_above(std::size_t aggregation, const CoreGroups& group_of) const {
    MostCommon<std::size_t> votes;
    for (const std::size_t core : near(aggregation, 2))
      if (group_of.contains(core)) votes.add(group_of.at(core));
    return votes.value_or(SIZE_MAX);
  }

  /// A small pod falls apart where two of its cables are missing. No group of cores is above both parts.
  void join_pods(const CoreGroups& group_of, std::size_t half) {
    std::vector<std::set<std::size_t>> groups(pods_.size());
    for (std::size_t p = 0; p < pods_.size(); ++p)
      for (const std::size_t node : pods_[p].aggregations) groups[p].insert(group_above(node, group_of));
    for (std::size_t p = 0; p < pods_.size(); ++p) {
      for (std::size_t q = p + 1; q < pods_.size(); ++q) {
        const bool shared =
            std::ranges::any_of(groups[q], [&](std::size_t one) { return groups[p].contains(one); });
        if (shared || pods_[p].leaves.size() + pods_[q].leaves.size() > half) continue;
        pods_[p].leaves.insert(pods_[p].leaves.end(), pods_[q].leaves.begin(), pods_[q].leaves.end());
        pods_[p].aggregations.insert(pods_[p].aggregations.end(), pods_[q].aggregations.begin(),
                                     pods_[q].aggregations.end());
        groups[p].insert(groups[q].begin(), groups[q].end());
        pods_.erase(pods_.begin() + static_cast<std::ptrdiff_t>(q));
        groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(q--));
      }
    }
  }

  std::vector<FamilyLayout> fat_tree() {
    const auto group_of = groups_of_cores();
    std::size_t half = most_servers_;
    for (const Pod& pod : pods_) half = std::max({half, pod.leaves.size(), pod.aggregations.size()});
    join_pods(group_of, half);
    half = std::max(half, (pods_.size() + 1) / 2);
    auto topology = parse(fmt::format("fattree:{}", 2 * half));
    if (!topology || pods_.size() > 2 * half || tiers_[2].size() > half * half) return {};
    FamilyLayout layout = empty_layout(*std::move(topology));
    const std::size_t first_switch = 2 * half * half * half, first_core = first_switch + 4 * half * half;
    std::vector<std::size_t> in_group(half, 0);
    for (const std::size_t core : tiers_[2]) {
      const auto group = group_of.find(core);
      if (group == group_of.end() || group->second >= half || in_group[group->second] == half) return {};
      layout.seen[first_core + group->second * half + in_group[group->second]++] =
          static_cast<std::int64_t>(core);
    }
    const auto place_of = [&](std::size_t pod, std::size_t group) -> std::int64_t& {
      return layout.seen[first_switch + pod * 2 * half + half + group];
    };
    const auto first_free = [&](std::size_t pod) {
      std::size_t group = 0;
      while (group < half && place_of(pod, group) >= 0) ++group;
      return group;
    };
    for (std::size_t p = 0; p < pods_.size(); ++p) {
      for (std::size_t i = 0; i < pods_[p].leaves.size(); ++i) {
        const LeafSwitch& leaf = leaves_[pods_[p].leaves[i]];
        put_servers(layout, leaf, (p * half + i) * half);
        layout.seen[first_switch + p * 2 * half + i] = static_cast<std::int64_t>(leaf.node);
      }
      // One that lost its cables upwards has the place that is left.
      std::vector<std::size_t> lost;
      for (const std::size_t aggregation : pods_[p].aggregations) {
        const std::size_t group = group_above(aggregation, group_of);
        if (group == SIZE_MAX) {
          lost.push_back(aggregation);
        } else if (place_of(p, group) >= 0) {
          return {};
        } else {
          place_of(p, group) = static_cast<std::int64_t>(aggregation);
        }
      }
      for (const std::size_t aggregation : lost) {
        const std::size_t group = first_free(p);
        if (group == half) return {};
        place_of(p, group) = static_cast<std::int64_t>(aggregation);
      }
    }
    // An aggregation switch that lost its cables downwards belongs to a pod that has none of its group.
    for (const std::size_t aggregation : tiers_[3]) {
      const std::size_t group = group_above(aggregation, group_of);
      std::size_t pod = 0;
      while (group < half && pod < pods_.size() && place_of(pod, group) >= 0) ++pod;
      if (group >= half || pod == pods_.size()) return {};
      place_of(pod, group) = static_cast<std::int64_t>(aggregation);
    }
    return {std::move(layout)};
  }

  const ServerWiring& wiring_;
  std::vector<std::size_t> tier_;
  std::vector<std::size_t> tiers_[4];  ///< switches
  std::vector<LeafSwitch> leaves_;     ///< in the order of their first servers
  std::vector<Pod> pods_;
  std::map<std::size_t, std::size_t> pod_at_;  ///< by switch of tier 1
  std::size_t most_servers_ = 0;
};

}  // namespace

std::vector<FamilyLayout> lay_out_tree(const ServerWiring& wiring) {
  return TreeLayout(wiring).make();
}

}  // namespace hips::topology
