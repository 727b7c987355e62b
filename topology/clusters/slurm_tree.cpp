#include "topology/clusters/slurm_tree.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "topology/cabling/cabling.hpp"
#include "topology/clusters/hostlist.hpp"
#include "topology/formats/parse.hpp"
#include "topology/formats/part.hpp"
#include "topology/formats/server_names.hpp"
#include "topology/spec.hpp"

namespace hips::topology {

tl::unexpected<Status> SlurmTree::bad(std::size_t line, std::string_view problem, Code code) const {
  return fail(code, fmt::format("{}: {}", file_.where(line), problem));
}

Result<void> SlurmTree::add(const SlurmEntry& entry) {
  Node node;
  node.name = entry.name;
  node.line = entry.line;
  node.is_block = entry.is_block;
  const bool lines = words_.entry == "line";
  const std::string_view key = node.is_block ? words_.block_name : words_.switch_name;
  if (const auto one = names(node.line, key, node.name); !one) {
    return fail(one.error());
  } else if (one->size() != 1) {
    return bad(node.line, fmt::format("{}{}{} is {} names; give each its own {}", key, words_.assign,
                                      in_quotes(node.name), one->size(), lines ? "line" : "entry"));
  }
  if (node.is_block && entry.switches) {
    return bad(node.line,
               fmt::format("invalid {} of a block; blocks have {} only", words_.switches, words_.nodes));
  }
  const bool has_both = entry.switches && entry.nodes;
  if ((has_both && !entry.is_shown) || (!entry.switches && !entry.nodes)) {
    const std::string one = fmt::format("{}{}", words_.nodes, words_.assign);
    return bad(
        node.line,
        fmt::format("{}{}{} has {}; write {}", key, words_.assign, in_quotes(node.name),
                    entry.nodes ? fmt::format("both {} and {}", words_.switches, words_.nodes)
                                : fmt::format("neither {} nor {}", words_.switches, words_.nodes),
                    node.is_block ? one : fmt::format("{}{} or {}", words_.switches, words_.assign, one)));
  }
  auto children = names(node.line, entry.switches ? words_.switches : words_.nodes,
                        entry.switches ? *entry.switches : *entry.nodes);
  if (!children) return fail(children.error());
  (entry.switches ? node.switches : node.nodes) = std::move(*children);
  if (auto dropped = drop_known(entry, node); !dropped) return dropped;
  if (!by_name_.emplace(node.name, nodes_.size()).second) {
    return bad(node.line, fmt::format("{}{}{} occurs twice; write it once, {}", key, words_.assign,
                                      in_quotes(node.name), lines ? "on one line" : "in one entry"));
  }
  nodes_.push_back(std::move(node));
  return {};
}

/// Drops nodes that another switch has, as Slurm does.
Result<void> SlurmTree::drop_known(const SlurmEntry& entry, Node& node) {
  if (std::ranges::find(node.nodes, "ALL") != node.nodes.end()) {
    return bad(node.line,
               fmt::format("{}{}ALL stands for nodes whose names are in slurm.conf; write the names",
                           words_.nodes, words_.assign));
  }
  std::vector<std::string> kept, known;
  for (std::string& host : node.nodes) {
    const bool is_new = hosts_.insert(host).second;
    (is_new ? kept : known).push_back(std::move(host));
  }
  node.nodes = std::move(kept);
  if (known.empty()) return {};
  if (entry.is_block) {
    return bad(node.line, fmt::format("{}: {} occurs twice in the file; a node must have one block",
                                      words_.nodes, in_quotes(known.front())));
  }
  result_.notes.push_back(fmt::format(
      "{}: {}{} occurs twice in the file; it stays where it is first", file_.where(node.line),
      in_quotes(known.front()), known.size() > 1 ? fmt::format(" (and {} more)", known.size() - 1) : ""));
  return {};
}

Result<ClusterTopology> SlurmTree::finish(std::vector<std::string> notes) {
  std::swap(notes, result_.notes);
  result_.notes.insert(result_.notes.end(), notes.begin(), notes.end());
  const auto tops = find_tops();
  if (!tops) return fail(tops.error());
  if (auto found = find_leaves(*tops); !found) return fail(found.error());
  auto topology = parse(spec_of());
  if (!topology) return fail(topology.error());
  result_.topology = std::move(*topology);
  list_cables();
  return std::move(result_);
}

/// Expands a hostlist, within the limit of names of the file.
Result<std::vector<std::string>> SlurmTree::names(std::size_t line, std::string_view key,
                                                  std::string_view value) {
  // Switches are no hosts, and have names of any kind.
  const auto list = Hostlist::parse(value, key == words_.nodes ? "" : ":/@+");
  if (!list) return bad(line, fmt::format("{}: {}", key, list.error().message));
  auto expanded = expander_.expand(*list);
  if (!expanded) return bad(line, fmt::format("{}={} {}", key, in_quotes(value), expanded.error().message));
  return expanded;
}

/// Blocks, or the switches that are below no other.
Result<std::vector<std::size_t>> SlurmTree::find_tops() {
  std::vector<std::size_t> tops;
  for (const Node& node : nodes_) {
    for (const std::string& child : node.switches) {
      const auto found = by_name_.find(child);
      if (found == by_name_.end()) {
        return bad(node.line, fmt::format("{}: {} has no {}; add {}{}{}", words_.switches, in_quotes(child),
                                          words_.entry, words_.switch_name, words_.assign, child));
      }
      Node& below = nodes_[found->second];
      if (below.has_parent)
        return bad(node.line, fmt::format("{}: {} is also below another switch; name it once",
                                          words_.switches, in_quotes(child)));
      below.has_parent = true;
    }
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].has_parent) tops.push_back(i);
  }
  if (tops.empty()) return bad(nodes_.front().line, "the switches form a cycle; one must be on top");
  if (tops.size() > 1 && !nodes_.front().is_block) {
    const Node &first = nodes_[tops[0]], &second = nodes_[tops[1]];
    result_.notes.push_back(fmt::format(
        "{}: {}{}{} and {}{} are on top; assuming that a network joins them "
        "which the file does not tell, as fast as they are",
        file_.where(second.line), words_.switch_name, words_.assign, in_quotes(second.name),
        in_quotes(first.name), tops.size() > 2 ? fmt::format(" (and {} more)", tops.size() - 2) : ""));
  }
  return tops;
}

/// The switches with nodes, from the first top downwards.
Result<void> SlurmTree::find_leaves(const std::vector<std::size_t>& tops) {
  std::size_t seen = 0;
  std::vector<Leaf> next;
  const auto add = [&](std::size_t node, std::vector<std::size_t> way, std::size_t number) {
    way.push_back(number);
    next.push_back({node, std::move(way)});
  };
  for (std::size_t i = tops.size(); i-- > 0;) add(tops[i], {}, i);
  while (!next.empty()) {
    Leaf leaf = std::move(next.back());
    next.pop_back();
    ++seen;
    const Node& node = nodes_[leaf.node];
    for (std::size_t i = node.switches.size(); i-- > 0;) add(by_name_.at(node.switches[i]), leaf.way, i);
    if (node.switches.empty()) leaves_.push_back(std::move(leaf));
  }
  // Switches that are not below a top are below themselves.
  if (seen < nodes_.size())
    return bad(nodes_.front().line, "some switches form a cycle; all must be below one switch");
  std::erase_if(leaves_, [&](const Leaf& leaf) { return nodes_[leaf.node].nodes.empty(); });
  return {};
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
  std::vector<bool> branches;  ///< by tier: whether a switch there has several below it
  for (const Leaf& leaf : leaves_) {
    room = std::max(room, nodes_[leaf.node].nodes.size());
    branches.resize(std::max(branches.size(), leaf.way.size()), false);
    for (std::size_t tier = 0; tier < leaf.way.size(); ++tier)
      branches[tier] = branches[tier] || leaf.way[tier] > 0;
  }
  const auto ports = fat_tree_ports();
  if (const auto tiers = std::ranges::count(branches, true); !ports && tiers > 1 && room > 1) {
    result_.notes.push_back(fmt::format(
        "{}: {} tiers of switches count as two: all leaf switches are taken for equally far apart",
        file_.name, tiers + 1));
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
