#include "topology/wiring/told_by_wiring.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "topology/levels.hpp"
#include "topology/most_common.hpp"

namespace hips::topology {
namespace {

class Telling {
 public:
  Telling(const ServerWiring& wiring, const Topology& topology, std::span<const std::int64_t> seen)
      : wiring_(wiring), topology_(topology), seen_(seen), graph_(topology.graph()) {}

  ToldWiring run() {
    name_switches();
    sort_cables();
    find_level_cables();
    for (std::size_t i = 0; i < graph_.links.size(); ++i) {
      const GraphLink& link = graph_.links[i];
      if (!is_told(link.a) || !is_told(link.b)) continue;
      if (const bool is_as_usual = cables_[i] == usual_cables(i); !is_as_usual)
        told_.cables.emplace(key_of(graph_, link), std::move(cables_[i]));
    }
    return std::move(told_);
  }

 private:
  using Pair = std::pair<std::int64_t, std::int64_t>;

  [[nodiscard]] std::int64_t seen(std::int64_t node) const { return seen_[static_cast<std::size_t>(node)]; }
  [[nodiscard]] const GraphNode& node(std::int64_t number) const {
    return graph_.nodes[static_cast<std::size_t>(number)];
  }
  /// Is it one of the nodes that the file lists?
  [[nodiscard]] bool is_told(std::int64_t number) const {
    return seen(number) >= 0 && static_cast<std::size_t>(seen(number)) < wiring_.listed.nodes.size();
  }

  void name_switches() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!graph_.nodes[i].is_switch) continue;
      const auto number = static_cast<std::int64_t>(i);
      if (topology_.family != Family::kGraph)
        told_.switch_names.push_back(
            seen(number) < 0 ? "" : wiring_.names[static_cast<std::size_t>(seen(number))]);
      if (seen(number) >= 0 && !is_told(number)) told_.assumed_switches.insert(graph_.nodes[i].id);
    }
  }

  /// Finds the cables of each link: those that the file lists between the same two nodes. Of servers each link is one of them.
  void sort_cables() {
    std::map<Pair, std::vector<double>> listed;
    for (const Cable& cable : wiring_.listed.cables) {
      const auto a = static_cast<std::int64_t>(cable.a.node), b = static_cast<std::int64_t>(cable.b.node);
      listed[std::minmax(a, b)].push_back(cable.up ? cable.bandwidth_bytes_per_s : 0);
    }
    for (auto& [pair, rates] : listed) std::ranges::sort(rates, std::greater());
    for (const GraphLink& link : graph_.links) {
      std::vector<double> of_link;
      const auto found = listed.find(std::minmax(seen(link.a), seen(link.b)));
      if (found != listed.end() && node(link.a).is_switch) {
        of_link = found->second;
      } else if (found != listed.end() && !found->second.empty()) {
        found->second.pop_back();
        of_link.push_back(link.up ? link.bandwidth_bytes_per_s : 0);
      }
      cables_.push_back(std::move(of_link));
    }
  }

  void find_level_cables() {
    levels_ = levels_of_links(topology_);
    if (topology_.family == Family::kGraph) return;
    std::vector<MostCommon<std::int64_t>> counts(network_levels(topology_).size());
    for (std::size_t i = 0; i < graph_.links.size(); ++i)
      if (node(graph_.links[i].a).is_switch && !cables_[i].empty())
        counts[levels_[i]].add(std::ssize(cables_[i]));
    std::vector<std::int64_t> usual;
    for (auto& of_level : counts) usual.push_back(of_level.value_or(1));
    if (std::ranges::any_of(usual, [](std::int64_t count) { return count > 1; })) told_.level_cables = usual;
  }

  [[nodiscard]] std::vector<double> usual_cables(std::size_t number) const {
    const GraphLink& link = graph_.links[number];
    const auto count = static_cast<std::size_t>(
        told_.level_cables.empty() || !node(link.a).is_switch ? 1 : told_.level_cables[levels_[number]]);
    return std::vector<double>(count, link.up ? link.bandwidth_bytes_per_s / static_cast<double>(count) : 0);
  }

  const ServerWiring& wiring_;
  const Topology& topology_;
  std::span<const std::int64_t> seen_;
  Graph graph_;
  std::vector<std::vector<double>> cables_;  ///< by link
  std::vector<std::size_t> levels_;          ///< by link
  ToldWiring told_;
};

}  // namespace

ToldWiring told_by(const ServerWiring& wiring, const Topology& topology, std::span<const std::int64_t> seen) {
  return Telling(wiring, topology, seen).run();
}

}  // namespace hips::topology
