// What becomes of Slurm's tree of switches: a family, of which places may be empty, or a tree of its own.

#include <algorithm>
#include <map>
#include <memory>
#include <unordered_set>

#include <fmt/format.h>

#include "topology/cabling/cabling.hpp"
#include "topology/cabling/cabling_builder.hpp"
#include "topology/clusters/level_rates.hpp"
#include "topology/clusters/slurm_tree.hpp"
#include "topology/clusters/told_switches.hpp"
#include "topology/formats/parse.hpp"
#include "topology/formats/part.hpp"
#include "topology/spec.hpp"
#include "topology/wiring/recognise.hpp"

namespace hips::topology {

Result<ClusterTopology> SlurmTree::finish(const SlurmOptions& options, std::vector<std::string> notes) {
  std::swap(notes, result_.notes);
  result_.notes.insert(result_.notes.end(), notes.begin(), notes.end());
  if (blocks_without_nodes_ > 0) {
    result_.notes.push_back(fmt::format(
        "{}: {}{}{} has no nodes{}; ignored", file_.where(first_without_.line), words_.block_name,
        words_.assign, in_quotes(first_without_.name),
        blocks_without_nodes_ > 1 ? fmt::format(" (and {} more)", blocks_without_nodes_ - 1) : ""));
  }
  const bool is_job = !options.job.empty();
  if (auto placed = place_all(options); !placed) return fail(placed.error());
  if (auto joined = join(is_job); !joined) return fail(joined.error());
  if (is_job) {
    if (auto kept = keep_ways_to(options.job); !kept) return fail(kept.error());
  }
  const auto tops = find_tops(is_job);
  if (!tops) return fail(tops.error());
  if (auto found = find_leaves(*tops); !found) return fail(found.error());
  if (leaves_.empty()) {
    return bad(nodes_.empty() ? first_without_.line : nodes_.front().line,
               is_job ? "no switch has a node of the job; check the names"
                      : "no switch has a node; add their names");
  }
  const bool has_upper_rate = std::ranges::any_of(
      options.tier_rates.begin() + std::min<std::ptrdiff_t>(1, std::ssize(options.tier_rates)),
      options.tier_rates.end(), [](double rate) { return rate > 0; });
  if (const auto rails = rail_spec(*tops); !rails.empty()) {
    auto topology = parse(rails);
    if (!topology) return fail(topology.error());
    result_.topology = std::move(*topology);
    result_.nodes = nodes_[tops->front()].nodes;
    list_rails(*tops);
  } else {
    note_again();
    note_tops(*tops, has_upper_rate);
    if (has_upper_rate && num_tiers() > 2 && !fat_tree_ports()) return whole_tree(options, *tops);
    auto topology = parse(spec_of());
    if (!topology) return fail(topology.error());
    result_.topology = std::move(*topology);
    list_cables();
  }
  tell_switches(result_);
  // The switches above leaves: the family has others.
  for (const Node& node : nodes_)
    if (!node.switches.empty() && node.nodes.empty() && !result_.told.assumed_switches.empty())
      result_.told.replaced_switches.push_back(node.name);
  if (auto given = give_level_rates(result_, file_.name, options.tier_rates); !given)
    return fail(given.error());
  return std::move(result_);
}

void SlurmTree::note_again() {
  if (again_.empty()) return;
  const auto& [node, hosts] = *again_.begin();
  std::size_t count = 0;
  for (const auto& [at, more] : again_) count += more.size();
  result_.notes.push_back(fmt::format("{}: {}{} occurs twice in the file; it stays where it is first",
                                      file_.where(nodes_[node].line), in_quotes(hosts.front()),
                                      count > 1 ? fmt::format(" (and {} more)", count - 1) : ""));
}

void SlurmTree::note_tops(const std::vector<std::size_t>& tops, bool has_rate) {
  if (tops.size() < 2 || nodes_[tops.front()].is_block) return;
  const Node &first = nodes_[tops[0]], &second = nodes_[tops[1]];
  result_.notes.push_back(fmt::format(
      "{}: {}{}{} and {}{} are on top; assuming that a network joins them which the file does not tell{}",
      file_.where(second.line), words_.switch_name, words_.assign, in_quotes(second.name),
      in_quotes(first.name), tops.size() > 2 ? fmt::format(" (and {} more)", tops.size() - 2) : "",
      has_rate ? "" : ", as fast as they are"));
}

/// Switches that join nothing and have the same nodes are rails: each joins one NIC of each node. Empty if they are not.
std::string SlurmTree::rail_spec(const std::vector<std::size_t>& tops) const {
  if (again_.empty() || tops.size() != 1) return "";
  const Node& first = nodes_[tops.front()];
  const std::unordered_set<std::string_view> hosts(first.nodes.begin(), first.nodes.end());
  std::size_t rails = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    if (node.parent != SIZE_MAX || !node.below.empty()) return "";
    ++rails;
    if (i == tops.front()) continue;
    const auto again = again_.find(i);
    if (again == again_.end() || again->second.size() != first.nodes.size() || !node.nodes.empty() ||
        !std::ranges::all_of(again->second, [&](const std::string& host) { return hosts.contains(host); }))
      return "";
    if (std::unordered_set<std::string_view>(again->second.begin(), again->second.end()).size() !=
        hosts.size())
      return "";
  }
  return fmt::format("rail:{},{}", first.nodes.size(), rails);
}

/// A cable of each node to each switch.
void SlurmTree::list_rails(const std::vector<std::size_t>& tops) {
  Cabling cabling;
  for (const std::string& host : nodes_[tops.front()].nodes)
    cabling.nodes.push_back({.name = host, .kind = CabledNode::Kind::kServer});
  const std::size_t num_hosts = cabling.nodes.size();
  for (const Node& node : nodes_) {
    for (std::size_t host = 0; host < num_hosts; ++host)
      cabling.cables.push_back({.a = {.node = host},
                                .b = {.node = cabling.nodes.size()},
                                .bandwidth_bytes_per_s = kDefaultBandwidthBytesPerS,
                                .latency_ns = kDefaultLatencyNs});
    cabling.nodes.push_back({.name = node.name, .kind = CabledNode::Kind::kSwitch});
  }
  result_.cabling.value = std::make_shared<const Cabling>(std::move(cabling));
}

/// What the file tells of cables: those from servers to leaf switches.
void SlurmTree::list_cables() {
  Cabling cabling;
  cabling.has_uplinks = leaves_.size() == 1;
  for (const Leaf& leaf : leaves_) {
    const std::size_t at = cabling.nodes.size();
    cabling.nodes.push_back({.name = nodes_[leaf.node].name, .kind = CabledNode::Kind::kSwitch});
    for (const std::string& host : nodes_[leaf.node].nodes) {
      cabling.cables.push_back({.a = {.node = cabling.nodes.size()},
                                .b = {.node = at},
                                .bandwidth_bytes_per_s = kDefaultBandwidthBytesPerS,
                                .latency_ns = kDefaultLatencyNs});
      cabling.nodes.push_back({.name = host, .kind = CabledNode::Kind::kServer});
    }
  }
  result_.cabling.value = std::make_shared<const Cabling>(std::move(cabling));
}

/// The tree as it is, with as many cables from each switch upwards as it has nodes below: rates of its tiers are given.
Result<ClusterTopology> SlurmTree::whole_tree(const SlurmOptions& options,
                                              const std::vector<std::size_t>& tops) {
  Cabling cabling;
  const auto rate_of = [&](std::size_t tier) {
    double rate = kDefaultBandwidthBytesPerS;
    for (std::size_t i = 0; i <= std::min(tier, options.tier_rates.size() - 1); ++i)
      if (options.tier_rates[i] > 0) rate = options.tier_rates[i];
    return rate;
  };
  struct Made {
    std::size_t at = 0, num_nodes = 0, tier = 0;  ///< tier: of the cables above it
    double rate = 0;                              ///< of each of them
  };
  const auto add_cables = [&](std::size_t from, std::size_t to, std::size_t count, double rate) {
    for (std::size_t i = 0; i < count; ++i)
      cabling.cables.push_back({.a = {.node = from},
                                .b = {.node = to},
                                .bandwidth_bytes_per_s = rate,
                                .latency_ns = kDefaultLatencyNs});
  };
  // Switches below come before those above them.
  std::vector<std::size_t> order(tops);
  for (std::size_t i = 0; i < order.size(); ++i)
    order.insert(order.end(), nodes_[order[i]].below.begin(), nodes_[order[i]].below.end());
  std::ranges::reverse(order);
  std::map<std::size_t, Made> made;
  for (const std::size_t node : order) {
    const auto& below_it = nodes_[node].below;
    if (nodes_[node].nodes.empty() && below_it.size() == 1) {
      // A switch above one other joins nothing.
      Made one = made.at(below_it.front());
      one.rate = std::min(one.rate, rate_of(++one.tier));
      made.emplace(node, one);
      continue;
    }
    Made one{.at = cabling.nodes.size(), .num_nodes = nodes_[node].nodes.size(), .tier = 1};
    cabling.nodes.push_back({.name = nodes_[node].name, .kind = CabledNode::Kind::kSwitch});
    for (const std::string& host : nodes_[node].nodes) {
      add_cables(cabling.nodes.size(), one.at, 1, rate_of(0));
      cabling.nodes.push_back({.name = host, .kind = CabledNode::Kind::kServer});
    }
    for (const std::size_t below : nodes_[node].below) {
      const Made& child = made.at(below);
      if (child.num_nodes == 0) continue;
      add_cables(child.at, one.at, child.num_nodes, child.rate);
      if (cabling.cables.size() > kMostCables)
        return bad(
            nodes_[node].line,
            fmt::format("the tree has more than {} cables, as many upwards as nodes below", kMostCables));
      one.num_nodes += child.num_nodes;
      one.tier = std::max(one.tier, child.tier + 1);
    }
    one.rate = rate_of(one.tier);
    made.emplace(node, one);
  }
  if (tops.size() > 1) {
    std::string name = "above";
    while (by_name_.contains(name) || hosts_.contains(name)) name += "-all";
    const std::size_t above = cabling.nodes.size();
    cabling.nodes.push_back({.name = name, .kind = CabledNode::Kind::kSwitch});
    for (const std::size_t top : tops)
      add_cables(made.at(top).at, above, made.at(top).num_nodes, made.at(top).rate);
  }
  cabling.notes = std::move(result_.notes);
  cabling.notes.push_back(fmt::format(
      "{}: the file does not tell how many cables lead upwards; assuming as many as each switch has "
      "nodes below",
      file_.name));
  return topology_of(file_.name, std::move(cabling));
}

/// The tiers of switches, without those of one switch.
std::size_t SlurmTree::num_tiers() const {
  std::vector<bool> branches;
  for (const Leaf& leaf : leaves_) {
    branches.resize(std::max(branches.size(), leaf.way.size()), false);
    for (std::size_t tier = 0; tier < leaf.way.size(); ++tier)
      branches[tier] = branches[tier] || leaf.way[tier] > 0;
  }
  return static_cast<std::size_t>(std::ranges::count(branches, true)) + 1;
}

/// The ports k of the switches of a Fat-Tree whose tiers the switches have, with places that may be empty: k/2 nodes of
/// a leaf, k/2 leaves of a pod, k pods. Removes what else the ways have: tiers of one switch.
std::optional<std::size_t> SlurmTree::fat_tree_ports() {
  const std::size_t depth = leaves_.front().way.size();
  std::size_t most_nodes = 0;
  std::vector<std::size_t> most(depth, 0);
  for (const Leaf& leaf : leaves_) {
    if (leaf.way.size() != depth) return std::nullopt;
    for (std::size_t tier = 0; tier < depth; ++tier) most[tier] = std::max(most[tier], leaf.way[tier] + 1);
    most_nodes = std::max(most_nodes, nodes_[leaf.node].nodes.size());
  }
  std::vector<std::size_t> tiers;
  for (std::size_t tier = 0; tier < depth; ++tier)
    if (most[tier] > 1) tiers.push_back(tier);
  if (tiers.size() != 2 || most_nodes != most[tiers[1]] || most[tiers[0]] != 2 * most_nodes)
    return std::nullopt;
  for (Leaf& leaf : leaves_) leaf.way = {leaf.way[tiers[0]], leaf.way[tiers[1]]};
  return 2 * most_nodes;
}

/// Also gives each server its place.
std::string SlurmTree::spec_of() {
  std::size_t room = 0;
  for (const Leaf& leaf : leaves_) room = std::max(room, nodes_[leaf.node].nodes.size());
  const std::size_t tiers = num_tiers();
  const auto ports = fat_tree_ports();
  if (!ports && tiers > 2 && room > 1) {
    result_.notes.push_back(fmt::format(
        "{}: {} tiers of switches count as two: all leaf switches are taken for equally far apart, until --rate "
        "spine=RATE or core=RATE tells how fast the upper ones are",
        file_.name, tiers));
  }
  std::vector<std::int64_t> used;
  for (std::size_t i = 0; i < leaves_.size(); ++i) {
    const auto& [node, way] = leaves_[i];
    const std::size_t place = ports ? way[0] * (*ports / 2) + way[1] : i;
    for (std::size_t at = 0; at < nodes_[node].nodes.size(); ++at) {
      used.push_back(static_cast<std::int64_t>(place * room + at));
      result_.nodes.push_back(nodes_[node].nodes[at]);
    }
  }
  const std::size_t places = ports ? *ports * *ports * *ports / 4 : leaves_.size() * room;
  const std::string part = used.size() < places ? fmt::format("[{}]", part_text(used)) : "";
  if (ports) return fmt::format("fattree:{}{}", *ports, part);
  if (leaves_.size() == 1 || room == 1) return fmt::format("switch:{}", used.size());
  return fmt::format("leafspine:{},{}{}", leaves_.size(), room, part);
}

}  // namespace hips::topology
