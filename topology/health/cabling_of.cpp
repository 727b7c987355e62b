#include "topology/health/cabling_of.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "topology/health/cable_tiers.hpp"
#include "topology/levels.hpp"

namespace hips::topology {
namespace {

/// The cabling without the nodes that are not kept.
Cabling only(const Cabling& cabling, const std::vector<bool>& keep) {
  Cabling result;
  result.has_uplinks = cabling.has_uplinks;
  std::vector<std::size_t> number(cabling.nodes.size());
  for (std::size_t node = 0; node < cabling.nodes.size(); ++node) {
    number[node] = result.nodes.size();
    if (keep[node]) result.nodes.push_back(cabling.nodes[node]);
  }
  for (Cable cable : cabling.cables) {
    if (!keep[cable.a.node] || !keep[cable.b.node]) continue;
    cable.a.node = number[cable.a.node];
    cable.b.node = number[cable.b.node];
    result.cables.push_back(std::move(cable));
  }
  // Nothing has to join a single switch.
  if (std::ranges::count(result.nodes, CabledNode::Kind::kSwitch, &CabledNode::kind) < 2)
    result.has_uplinks = true;
  return result;
}

/// Keeps the switches above the nodes that are kept: leaves of servers, spines of leaves, ...
void keep_switches_above(const Cabling& cabling, std::vector<bool>& keep) {
  const CableTiers tiers = cable_tiers(cabling);
  for (std::size_t tier = 1; tier <= tiers.highest; ++tier) {
    for (const Cable& cable : cabling.cables) {
      const bool a_is_lower = tiers.of[cable.a.node] < tiers.of[cable.b.node];
      const std::size_t lower = a_is_lower ? cable.a.node : cable.b.node;
      const std::size_t upper = a_is_lower ? cable.b.node : cable.a.node;
      if (tiers.of[upper] == tier && tiers.of[lower] + 1 == tier && keep[lower]) keep[upper] = true;
    }
  }
}

Cabling without_assumed(Cabling cabling) {
  std::vector<bool> keep;
  for (const CabledNode& node : cabling.nodes) keep.push_back(!node.is_assumed);
  cabling.has_uplinks = std::ranges::find(keep, false) == keep.end();
  return only(cabling, keep);
}

/// Makes the cabling of the graph of a topology. Cables that the file lists have its ports.
class FromGraph {
 public:
  explicit FromGraph(const TopologyFile& file) : file_(file), graph_(file.topology.graph()) {}

  Cabling make() {
    add_nodes();
    find_listed();
    const auto cables = cables_of_links(file_.topology, graph_, file_.told);
    const auto& assumed = file_.told.assumed_rates;
    const auto levels = levels_of_links(file_.topology);
    for (std::size_t i = 0; i < graph_.links.size(); ++i) {
      const GraphLink& link = graph_.links[i];
      const bool is_assumed =
          assumed.contains(levels[i]) && file_.topology.family != Family::kGraph &&
          link.bandwidth_bytes_per_s == network_levels(file_.topology)[levels[i]].bandwidth_bytes_per_s;
      const std::size_t before = result_.cables.size();
      add_link(link, cables[i], is_assumed);
      for (std::size_t cable = before; cable < result_.cables.size(); ++cable)
        (result_.cables[cable].is_rate_assumed ? at_assumed_rates_ : at_told_rates_).insert(levels[i]);
    }
    return std::move(result_);
  }

  /// After make().
  [[nodiscard]] std::set<std::size_t> levels_at_assumed_rates() const {
    std::set<std::size_t> levels = file_.told.assumed_rates;
    std::ranges::set_difference(at_assumed_rates_, at_told_rates_, std::inserter(levels, levels.end()));
    return levels;
  }

 private:
  using Names = std::pair<std::string_view, std::string_view>;

  void add_nodes() {
    for (const GraphNode& node : graph_.nodes) {
      const std::string name = node.is_switch ? switch_name(file_.told, node) : file_.server_name(node.id);
      number_.push_back(name.empty() ? SIZE_MAX : result_.nodes.size());
      if (name.empty()) continue;
      result_.nodes.push_back(
          {.name = name,
           .kind = node.is_switch ? CabledNode::Kind::kSwitch : CabledNode::Kind::kServer,
           .is_assumed = node.is_switch && file_.told.assumed_switches.contains(node.id)});
    }
  }

  void find_listed() {
    if (file_.cabling.value == nullptr) return;
    const Cabling& all = *file_.cabling.value;
    for (const Cable& cable : all.cables)
      listed_[std::minmax<std::string_view>(all.nodes[cable.a.node].name, all.nodes[cable.b.node].name)]
          .push_back(&cable);
    // The first is taken first.
    for (auto& [names, cables] : listed_) std::ranges::reverse(cables);
  }

  [[nodiscard]] CableEnd end(std::int64_t number, Rail rail) const {
    const GraphNode& node = graph_.nodes[static_cast<std::size_t>(number)];
    std::string port;
    if (!node.is_switch && rail != kNoRail) port = file_.device(node.id, rail);
    if (!node.is_switch && rail != kNoRail && port.empty()) port = fmt::format("{}{}", kNicNumber, rail);
    return {.node = number_[static_cast<std::size_t>(number)], .port = std::move(port)};
  }

  void add_link(const GraphLink& link, const std::vector<double>& rates, bool is_rate_assumed) {
    const CableEnd a = end(link.a, link.a_port), b = end(link.b, link.b_port);
    if (a.node == SIZE_MAX || b.node == SIZE_MAX) return;
    const std::string_view a_name = result_.nodes[a.node].name, b_name = result_.nodes[b.node].name;
    const auto found = listed_.find(std::minmax(a_name, b_name));
    // Of a part, what the file lists of two switches may not be told.
    const bool is_listed = found != listed_.end() && found->second.size() >= rates.size() &&
                           (link.a_port != kNoRail || found->second.size() == rates.size());
    for (const double rate : rates) {
      if (!is_listed) {
        result_.cables.push_back({.a = a,
                                  .b = b,
                                  .bandwidth_bytes_per_s = rate > 0 ? rate : link.bandwidth_bytes_per_s,
                                  .latency_ns = link.latency_ns,
                                  .up = rate > 0,
                                  .is_rate_assumed = is_rate_assumed});
        continue;
      }
      Cable cable = *found->second.back();
      found->second.pop_back();
      if (file_.cabling.value->nodes[cable.a.node].name != a_name) std::swap(cable.a, cable.b);
      cable.a.node = a.node;
      cable.b.node = b.node;
      cable.latency_ns = link.latency_ns;
      cable.is_rate_assumed = cable.is_rate_assumed || is_rate_assumed;
      result_.cables.push_back(std::move(cable));
    }
  }

  const TopologyFile& file_;
  Graph graph_;
  std::vector<std::size_t> number_;  ///< by node of the graph; SIZE_MAX: it is left out
  std::map<Names, std::vector<const Cable*>> listed_;
  Cabling result_;
  std::set<std::size_t> at_assumed_rates_, at_told_rates_;  ///< levels of their cables
};

}  // namespace

Cabling cabling_of(const TopologyFile& file) {
  if (file.cabling.value == nullptr) return without_assumed(cabling_with_assumed(file));
  const Cabling& all = *file.cabling.value;
  const std::unordered_set<std::string_view> names(file.server_names.begin(), file.server_names.end());
  std::vector<bool> keep;
  std::size_t servers = 0, kept = 0;
  for (const CabledNode& node : all.nodes) {
    const bool is_server = node.kind == CabledNode::Kind::kServer;
    keep.push_back(is_server && names.contains(node.name));
    servers += is_server ? 1 : 0;
    kept += keep.back() ? 1 : 0;
  }
  if (kept == servers) return all;
  keep_switches_above(all, keep);
  return only(all, keep);
}

Cabling cabling_with_assumed(const TopologyFile& file) {
  return FromGraph(file).make();
}

std::set<std::size_t> levels_at_assumed_rates(const TopologyFile& file) {
  FromGraph made(file);
  made.make();
  return made.levels_at_assumed_rates();
}

Cabling cabling_of_leaf(const Cabling& cabling, std::size_t leaf) {
  std::vector<bool> keep(cabling.nodes.size(), false);
  std::size_t servers = 0;
  for (const Cable& cable : cabling.cables) {
    if (cable.a.node != leaf && cable.b.node != leaf) continue;
    const std::size_t other = node_across(cable, leaf);
    if (cabling.nodes[other].kind != CabledNode::Kind::kServer || keep[other]) continue;
    keep[other] = true;
    ++servers;
  }
  // Switches and the servers of the leaf that have a cable to them.
  std::set<std::pair<std::size_t, std::size_t>> cabled;
  for (const Cable& cable : cabling.cables) {
    for (const auto& [node, other] :
         {std::pair(cable.a.node, cable.b.node), std::pair(cable.b.node, cable.a.node)})
      if (keep[node] && cabling.nodes[other].kind != CabledNode::Kind::kServer) cabled.emplace(other, node);
  }
  std::map<std::size_t, std::size_t> servers_of;
  for (const auto& [node, server] : cabled) ++servers_of[node];
  for (const auto& [node, count] : servers_of)
    if (count == servers) keep[node] = true;
  keep[leaf] = true;
  return only(cabling, keep);
}

}  // namespace hips::topology
