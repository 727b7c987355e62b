#include "topology/clusters/slurm_tree.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "topology/cabling/text_lines.hpp"
#include "topology/clusters/hostlist.hpp"
#include "topology/clusters/slurm_nodes.hpp"
#include "topology/formats/server_names.hpp"
#include "topology/spec.hpp"

namespace hips::topology {
namespace {

/// Of switches, one above the other.
constexpr std::size_t kMostTiers = 64;

}  // namespace

tl::unexpected<Status> SlurmTree::bad(std::size_t line, std::string_view problem, Code code) const {
  return fail(code, fmt::format("{}: {}", file_.where(line), problem));
}

Result<void> SlurmTree::add(const SlurmEntry& entry) {
  const bool lines = words_.entry == "line";
  const std::string_view key = entry.is_block ? words_.block_name : words_.switch_name;
  if (const auto one = names(entry, key, entry.name); !one) {
    return fail(one.error());
  } else if (one->size() != 1) {
    return bad(entry.line, fmt::format("{}{}{} is {} names; give each its own {}", key, words_.assign,
                                       in_quotes(entry.name), one->size(), lines ? "line" : "entry"));
  }
  if (entry.is_block && entry.switches) {
    return bad(entry.line,
               fmt::format("invalid {} of a block; blocks have {} only", words_.switches, words_.nodes));
  }
  if (entry.is_block && !entry.nodes) {
    // Slurm's tools pad lists of blocks with them.
    if (blocks_without_nodes_++ == 0) first_without_ = entry;
    return {};
  }
  if (!entry.switches && !entry.nodes) {
    return bad(entry.line, fmt::format("{}{}{} has neither {} nor {}; write {}{} or {}{}", key, words_.assign,
                                       in_quotes(entry.name), words_.switches, words_.nodes, words_.switches,
                                       words_.assign, words_.nodes, words_.assign));
  }
  Node node{.name = entry.name,
            .line = entry.line,
            .is_block = entry.is_block,
            .is_shown = entry.is_shown,
            .switches = {},
            .nodes = {}};
  if (entry.switches) {
    auto children = names(entry, words_.switches, *entry.switches);
    if (!children) return fail(children.error());
    node.switches = std::move(*children);
  }
  // Those of upper switches are shown again below.
  if (entry.nodes && !(entry.switches && entry.is_shown)) {
    auto children = names(entry, words_.nodes, *entry.nodes);
    if (!children) return fail(children.error());
    node.nodes = std::move(*children);
    if (auto dropped = drop_known(entry, node); !dropped) return dropped;
  }
  if (!by_name_.emplace(node.name, nodes_.size()).second) {
    return bad(node.line, fmt::format("{}{}{} occurs twice; write it once, {}", key, words_.assign,
                                      in_quotes(node.name), lines ? "on one line" : "in one entry"));
  }
  nodes_.push_back(std::move(node));
  return {};
}

/// Drops nodes that another switch has, as Slurm does.
Result<void> SlurmTree::drop_known(const SlurmEntry& entry, Node& node) {
  node.has_all =
      std::erase_if(node.nodes, [](const std::string& host) { return in_lower_case(host) == "all"; }) > 0;
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
  again_[nodes_.size()] = std::move(known);
  return {};
}

/// Gives a switch with Nodes=ALL the nodes that no other has.
Result<void> SlurmTree::place_all(const SlurmOptions& options) {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    if (!node.has_all) continue;
    const auto all = all_slurm_nodes(options);
    if (!all) return fail(all.error());
    if (all->empty()) {
      return bad(
          node.line,
          fmt::format(
              "{}{}ALL stands for all nodes of slurm.conf, which is not beside the file; write their names, "
              "or name those of the job with --nodelist",
              words_.nodes, words_.assign));
    }
    for (const std::string& host : *all) {
      if (hosts_.insert(host).second) {
        node.nodes.push_back(host);
      } else if (node.nodes.empty()) {
        again_[i].push_back(host);
      }
    }
    // Those that other switches have are not named twice: only a second switch with all nodes is worth a word.
    if (!node.nodes.empty()) again_.erase(i);
  }
  return {};
}

/// Expands a hostlist, within the limit of names of the file.
Result<std::vector<std::string>> SlurmTree::names(const SlurmEntry& entry, std::string_view key,
                                                  std::string_view value) {
  const auto list = Hostlist::parse(value);
  if (!list) {
    // Older ones cut lines at 512 characters.
    const bool is_cut = entry.is_shown && std::ranges::count(value, '[') > std::ranges::count(value, ']');
    return bad(entry.line, fmt::format("{}: {}{}", key, list.error().message,
                                       is_cut ? "; if scontrol has cut the line, run "
                                                "SLURM_TOPO_LEN=1000000 scontrol show topology"
                                              : ""));
  }
  auto expanded = expander_.expand(*list);
  if (!expanded)
    return bad(entry.line, fmt::format("{}={} {}", key, in_quotes(value), expanded.error().message));
  return expanded;
}

tl::unexpected<Status> SlurmTree::has_both(const Node& node) const {
  return bad(node.line, fmt::format("{}{}{} has both {} and {}; write {}{} or {}{}", words_.switch_name,
                                    words_.assign, in_quotes(node.name), words_.switches, words_.nodes,
                                    words_.switches, words_.assign, words_.nodes, words_.assign));
}

/// Finds the switches below each switch. Of a file that is read for a job, those that are not there do not matter.
Result<void> SlurmTree::join(bool is_job) {
  for (Node& node : nodes_) {
    for (const std::string& child : node.switches) {
      const auto found = by_name_.find(child);
      if (found != by_name_.end()) {
        node.below.push_back(found->second);
      } else if (!is_job) {
        if (!node.nodes.empty()) return has_both(node);
        return bad(node.line, fmt::format("{}: {} has no {}; add {}{}{}", words_.switches, in_quotes(child),
                                          words_.entry, words_.switch_name, words_.assign, child));
      }
    }
  }
  if (auto dropped = drop_neighbours(); !dropped && !is_job) return dropped;
  return choose_parents();
}

/// Switches of which each is above the next, and the last above the first. Any of those above `node`, or itself.
tl::unexpected<Status> SlurmTree::forms_cycle(std::size_t node) const {
  std::unordered_set<std::size_t> seen;
  while (seen.insert(node).second) node = nodes_[node].parent;
  // Downwards, from the one that the file has first.
  std::vector<std::size_t> cycle{node};
  for (std::size_t above = nodes_[node].parent; above != node; above = nodes_[above].parent)
    cycle.push_back(above);
  std::ranges::reverse(cycle);
  std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
  return names_cycle(cycle);
}

tl::unexpected<Status> SlurmTree::names_cycle(const std::vector<std::size_t>& cycle) const {
  constexpr std::size_t kMostNamed = 8;
  std::string names;
  for (std::size_t i = 0; i < std::min(cycle.size(), kMostNamed); ++i) names += nodes_[cycle[i]].name + " > ";
  if (cycle.size() > kMostNamed) names += fmt::format("({} more) > ", cycle.size() - kMostNamed);
  return bad(nodes_[cycle.front()].line, fmt::format("the switches form a cycle: {}{}; one must be on top",
                                                     names, nodes_[cycle.front()].name));
}

/// Switches that name each other are neighbours: none is above the other.
Result<void> SlurmTree::drop_neighbours() {
  std::set<std::pair<std::size_t, std::size_t>> edges;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    for (const std::size_t other : nodes_[i].below) edges.emplace(i, other);
  std::vector<std::pair<std::size_t, std::size_t>> mutual;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    std::erase_if(nodes_[i].below, [&](std::size_t other) {
      const bool is_mutual = other != i && edges.contains({other, i});
      if (is_mutual) mutual.emplace_back(i, other);
      return is_mutual;
    });
  }
  // One without nodes that others name back is above them, if it has no other place.
  std::map<std::size_t, std::vector<std::size_t>> lost;
  for (const auto& [switch_node, other] : mutual)
    if (nodes_[switch_node].below.empty() && nodes_[switch_node].nodes.empty())
      lost[switch_node].push_back(other);
  for (auto& [top, others] : lost) {
    const auto other = std::ranges::find_if(others, [&](std::size_t one) { return lost.contains(one); });
    if (other != others.end()) return names_cycle({top, *other});
    nodes_[top].below = std::move(others);
  }
  std::erase_if(mutual,
                [&](const auto& pair) { return lost.contains(pair.first) || lost.contains(pair.second); });
  if (!mutual.empty()) {
    const auto& [first, second] = mutual.front();
    result_.notes.push_back(fmt::format(
        "{}: {} and {} name each other{}; taken for neighbours, of which none is above the other",
        file_.where(nodes_[first].line), in_quotes(nodes_[first].name), in_quotes(nodes_[second].name),
        mutual.size() > 2 ? fmt::format(" (and {} more)", mutual.size() / 2 - 1) : ""));
  }
  for (const Node& node : nodes_)
    if (!node.below.empty() && !node.nodes.empty()) return has_both(node);
  return {};
}

/// A switch below several others stays below the first.
Result<void> SlurmTree::choose_parents() {
  std::size_t dropped = 0;
  const Node *first = nullptr, *above = nullptr;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    std::vector<std::size_t> kept;
    for (const std::size_t below : nodes_[i].below) {
      std::size_t& parent = nodes_[below].parent;
      if (parent == SIZE_MAX) {
        parent = i;
        kept.push_back(below);
      } else if (parent == i) {
        return bad(nodes_[i].line, fmt::format("{}: {} is named twice; name it once", words_.switches,
                                               in_quotes(nodes_[below].name)));
      } else if (dropped++ == 0) {
        first = &nodes_[below];
        above = &nodes_[i];
      }
    }
    nodes_[i].below = std::move(kept);
  }
  if (dropped == 0) return {};
  result_.notes.push_back(fmt::format("{}: {} is below {} and {}{}; it counts as below the first",
                                      file_.where(above->line), in_quotes(first->name),
                                      in_quotes(nodes_[first->parent].name), in_quotes(above->name),
                                      dropped > 1 ? fmt::format(" (and {} more)", dropped - 1) : ""));
  return {};
}

/// Removes what is on no way from a node of the job to the top.
Result<void> SlurmTree::keep_ways_to(const std::vector<std::string>& job) {
  const HostNames wanted(job);
  std::vector<std::size_t> kept_for(nodes_.size(), SIZE_MAX);
  for (std::size_t leaf = 0; leaf < nodes_.size(); ++leaf) {
    if (std::ranges::none_of(nodes_[leaf].nodes, [&](const std::string& host) { return wanted.has(host); }))
      continue;
    std::size_t node = leaf;
    for (; node != SIZE_MAX && kept_for[node] == SIZE_MAX; node = nodes_[node].parent) kept_for[node] = leaf;
    if (node != SIZE_MAX && kept_for[node] == leaf) return forms_cycle(node);
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    std::erase_if(node.below, [&](std::size_t below) { return kept_for[below] == SIZE_MAX; });
    if (kept_for[i] != SIZE_MAX) continue;
    node.nodes.clear();
    node.switches.clear();
  }
  return {};
}

/// Blocks, or the switches that are below no other, with nodes somewhere below them.
Result<std::vector<std::size_t>> SlurmTree::find_tops(bool is_job) {
  std::vector<std::size_t> tops;
  std::vector<bool> seen(nodes_.size(), false);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].parent != SIZE_MAX) continue;
    bool has_nodes = false;
    std::vector<std::size_t> next{i};
    while (!next.empty()) {
      const Node& node = nodes_[next.back()];
      seen[next.back()] = true;
      next.pop_back();
      has_nodes = has_nodes || !node.nodes.empty();
      next.insert(next.end(), node.below.begin(), node.below.end());
    }
    if (has_nodes) tops.push_back(i);
  }
  // A switch that is not below a top is in a cycle or below one.
  const auto unseen = std::ranges::find(seen, false);
  if (unseen != seen.end() && !is_job) return forms_cycle(static_cast<std::size_t>(unseen - seen.begin()));
  return tops;
}

/// The switches with nodes, from the first top downwards.
Result<void> SlurmTree::find_leaves(const std::vector<std::size_t>& tops) {
  std::vector<Leaf> next;
  const auto add = [&](std::size_t node, std::vector<std::size_t> way, std::size_t number) {
    way.push_back(number);
    next.push_back({node, std::move(way)});
  };
  for (std::size_t i = tops.size(); i-- > 0;) add(tops[i], {}, i);
  while (!next.empty()) {
    Leaf leaf = std::move(next.back());
    next.pop_back();
    const Node& node = nodes_[leaf.node];
    if (leaf.way.size() > kMostTiers)
      return bad(node.line, fmt::format("{}{}{} is below {} switches, one above the other (valid: up to {})",
                                        words_.switch_name, words_.assign, in_quotes(node.name),
                                        leaf.way.size() - 1, kMostTiers - 1));
    for (std::size_t i = node.below.size(); i-- > 0;) add(node.below[i], leaf.way, i);
    if (!node.nodes.empty()) leaves_.push_back(std::move(leaf));
  }
  return {};
}

}  // namespace hips::topology
