#include "topology/clusters/slurm_tree.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "topology/clusters/hostlist.hpp"
#include "topology/formats/parse.hpp"
#include "topology/formats/server_names.hpp"
#include "topology/spec.hpp"

namespace hips::topology {

tl::unexpected<Status> SlurmTree::bad(std::size_t line, std::string_view problem, Code code) const {
  return fail(code, fmt::format("{}: line {}: {}", file_, line, problem));
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
  if (entry.switches.has_value() == entry.nodes.has_value()) {
    const std::string one = fmt::format("{}{}", words_.nodes, words_.assign);
    return bad(
        node.line,
        fmt::format("{}{}{} has {}; write {}", key, words_.assign, in_quotes(node.name),
                    entry.nodes ? fmt::format("both {} and {}", words_.switches, words_.nodes)
                                : fmt::format("neither {} nor {}", words_.switches, words_.nodes),
                    node.is_block ? one : fmt::format("{}{} or {}", words_.switches, words_.assign, one)));
  }
  auto children = names(node.line, entry.nodes ? words_.nodes : words_.switches,
                        entry.nodes ? *entry.nodes : *entry.switches);
  if (!children) return fail(children.error());
  (entry.nodes ? node.nodes : node.switches) = std::move(*children);
  for (const std::string& host : node.nodes) {
    if (!hosts_.insert(host).second) {
      return bad(node.line, fmt::format("{}: {} occurs twice in the file; a node must have one switch",
                                        words_.nodes, in_quotes(host)));
    }
  }
  if (!by_name_.emplace(node.name, nodes_.size()).second) {
    return bad(node.line, fmt::format("{}{}{} occurs twice; write it once, {}", key, words_.assign,
                                      in_quotes(node.name), lines ? "on one line" : "in one entry"));
  }
  nodes_.push_back(std::move(node));
  return {};
}

Result<ClusterTopology> SlurmTree::finish(std::vector<std::string> notes) {
  const auto made = nodes_.front().is_block ? block_tiers() : tree_tiers();
  if (!made) return fail(made.error());
  auto spec = spec_of(*made);
  if (!spec) return fail(spec.error());
  auto topology = parse(*spec);
  if (!topology) return fail(topology.error());
  result_.topology = std::move(*topology);
  result_.notes = std::move(notes);
  return std::move(result_);
}

/// Expands a hostlist, within the limit of names of the file.
Result<std::vector<std::string>> SlurmTree::names(std::size_t line, std::string_view key,
                                                  std::string_view value) {
  const auto list = Hostlist::parse(value);
  if (!list) return bad(line, fmt::format("{}: {}", key, list.error().message));
  if (list->size() > kMaxServerNames - num_names_) {
    return bad(line, fmt::format("{}={} has {} names (valid: up to {} in the file)", key, in_quotes(value),
                                 list->size(), kMaxServerNames));
  }
  num_names_ += list->size();
  return list->expand(kMaxServerNames);
}

Result<SlurmTree::Tiers> SlurmTree::block_tiers() {
  std::vector<std::size_t> all(nodes_.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  const auto size = children_of(all);
  if (!size) return fail(size.error());
  return Tiers{*size, nodes_.size()};
}

Result<SlurmTree::Tiers> SlurmTree::tree_tiers() {
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
  std::vector<std::size_t> tier;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].has_parent) tier.push_back(i);
  }
  if (tier.empty()) return bad(nodes_.front().line, "the switches form a cycle; one must be on top");
  if (tier.size() > 1) {
    return bad(nodes_[tier[1]].line,
               fmt::format("{}{}{} and {} are both on top; add a switch with {}{}{},{}", words_.switch_name,
                           words_.assign, in_quotes(nodes_[tier[1]].name), in_quotes(nodes_[tier[0]].name),
                           words_.switches, words_.assign, nodes_[tier[0]].name, nodes_[tier[1]].name));
  }
  Tiers tiers;
  std::size_t seen = 0;
  for (;;) {
    seen += tier.size();
    const auto children = children_of(tier);
    if (!children) return fail(children.error());
    tiers.insert(tiers.begin(), *children);
    if (!nodes_[tier.front()].nodes.empty()) break;
    std::vector<std::size_t> below;
    for (const std::size_t i : tier) {
      for (const std::string& child : nodes_[i].switches) below.push_back(by_name_.at(child));
    }
    tier = std::move(below);
  }
  // Switches that are not below the top are below themselves.
  if (seen < nodes_.size())
    return bad(nodes_.front().line, "some switches form a cycle; all must be below one switch");
  return tiers;
}

/// The number of children of each switch of a tier. Nodes of the lowest tier become the servers.
Result<std::size_t> SlurmTree::children_of(const std::vector<std::size_t>& tier) {
  const Node& first = nodes_[tier.front()];
  const auto count = [](const Node& node) { return node.nodes.size() + node.switches.size(); };
  for (const std::size_t i : tier) {
    const Node& node = nodes_[i];
    if (count(node) == count(first) && node.nodes.empty() == first.nodes.empty()) continue;
    const auto what = [&](const Node& each) {
      return fmt::format("{} has {} {}", in_quotes(each.name), count(each),
                         each.nodes.empty() ? "switches" : "nodes");
    };
    return bad(
        node.line,
        fmt::format("{}, but {} (line {}); the switches of a tier must have equally many children of one "
                    "kind: import a file with those of the job only, or name a topology with -t",
                    what(node), what(first), first.line),
        Code::kUnsupported);
  }
  for (const std::size_t i : tier)
    result_.nodes.insert(result_.nodes.end(), nodes_[i].nodes.begin(), nodes_[i].nodes.end());
  return count(first);
}

Result<std::string> SlurmTree::spec_of(Tiers tiers) {
  std::erase(tiers, 1U);
  if (tiers.empty()) return std::string("switch:1");
  if (tiers.size() == 1) return fmt::format("switch:{}", tiers[0]);
  if (tiers.size() == 2) return fmt::format("leafspine:{},{}", tiers[1], tiers[0]);
  if (tiers.size() == 3 && tiers[0] == tiers[1] && tiers[2] == 2 * tiers[0])
    return fmt::format("fattree:{}", tiers[2]);
  return fail(
      Code::kUnsupported,
      fmt::format("{}: unsupported tiers of {}, from the lowest upwards; three tiers must be k/2, k/2 and k "
                  "(fattree:k); with -t leafspine:{},{} all leaf switches count as equally far apart",
                  file_, fmt::join(tiers, ", "), result_.nodes.size() / tiers[0], tiers[0]));
}

}  // namespace hips::topology
