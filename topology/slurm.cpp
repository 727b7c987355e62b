#include "topology/slurm.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "topology/hostlist.hpp"
#include "topology/parse.hpp"
#include "topology/spec.hpp"

namespace hips::topology {
namespace {

/// A switch or a block, as its line has it.
struct Node {
  std::string name;
  std::size_t line = 0;
  bool is_block = false;
  std::vector<std::string> switches, nodes;
  bool has_parent = false;
};

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

class SlurmReader {
 public:
  SlurmReader(std::string_view name, std::string_view text) : name_(name), text_(text) {}

  Result<SlurmTopology> read() {
    if (auto read = read_lines(); !read) return fail(read.error());
    if (nodes_.empty()) {
      return bad(1,
                 "no switch and no block is in the file; write lines such as SwitchName=leaf0 Nodes=n[0-3]");
    }
    const bool blocks = nodes_.front().is_block;
    for (const Node& node : nodes_) {
      if (node.is_block != blocks)
        return bad(node.line,
                   "switches and blocks stand in one file; keep either SwitchName or BlockName lines");
    }
    const auto tiers = blocks ? block_tiers() : tree_tiers();
    if (!tiers) return fail(tiers.error());
    auto spec = spec_of(*tiers);
    if (!spec) return fail(spec.error());
    auto topology = parse(*spec);
    if (!topology) return fail(topology.error());
    result_.topology = std::move(*topology);
    return std::move(result_);
  }

 private:
  [[nodiscard]] tl::unexpected<Status> bad(std::size_t line, std::string_view problem,
                                           Code code = Code::kInvalidArgument) const {
    return fail(code, fmt::format("{}: line {}: {}", name_, line, problem));
  }

  Result<void> read_lines() {
    std::size_t number = 0;
    std::string joined;
    std::size_t first = 0;
    for (std::string_view rest = text_; !rest.empty();) {
      const std::size_t end = rest.find('\n');
      std::string_view line = rest.substr(0, end);
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
      ++number;
      if (joined.empty()) first = number;
      line = line.substr(0, line.find('#'));
      while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.remove_suffix(1);
      const bool goes_on = !line.empty() && line.back() == '\\';
      if (goes_on) line.remove_suffix(1);
      // As Slurm does: what the next line begins with, a space or not, separates it.
      joined += line;
      if (goes_on && rest.empty()) return bad(number, "\"\\\" continues a line, and none follows; remove it");
      if (goes_on) continue;
      if (auto read = read_line(first, joined); !read) return read;
      joined.clear();
    }
    return {};
  }

  Result<void> read_line(std::size_t line, std::string_view text) {
    constexpr std::string_view kSpace = " \t\r\v\f";
    std::map<std::string, std::string_view> values;  // by key, in lower case
    for (std::size_t at = text.find_first_not_of(kSpace); at != std::string_view::npos;
         at = text.find_first_not_of(kSpace, at)) {
      const std::size_t end = std::min(text.find_first_of(kSpace, at), text.size());
      const std::string_view word = text.substr(at, end - at);
      at = end;
      const std::size_t equals = word.find('=');
      if (equals == std::string_view::npos || equals == 0)
        return bad(line, fmt::format("{} is no KEY=VALUE; write such as SwitchName=leaf0", quoted(word)));
      const std::string key = lower(word.substr(0, equals));
      if (equals + 1 == word.size())
        return bad(line, fmt::format("nothing follows {}=; write a value or leave the key out",
                                     word.substr(0, equals)));
      if (!values.emplace(key, word.substr(equals + 1)).second)
        return bad(line, fmt::format("{} occurs twice; write it once", quoted(word.substr(0, equals))));
      if (at == text.size()) break;
    }
    if (values.empty()) return {};
    return add(line, values);
  }

  Result<void> add(std::size_t line, std::map<std::string, std::string_view>& values) {
    const auto take = [&](const char* key) -> std::optional<std::string_view> {
      const auto found = values.find(key);
      if (found == values.end()) return std::nullopt;
      const std::string_view value = found->second;
      values.erase(found);
      return value;
    };
    const auto switch_name = take("switchname"), block_name = take("blockname");
    const auto switches = take("switches"), nodes = take("nodes");
    for (const auto& [key, value] : values) {
      const bool known = key == "linkspeed" || key == "blocksizes";
      result_.notes.push_back(fmt::format("{}: line {}: {}={} {}", name_, line, key, quoted(value),
                                          known ? "says nothing of the wiring" : "is not known; ignored"));
    }
    if (!switch_name && !block_name) {
      if (switches || nodes)
        return bad(line, "Switches and Nodes belong to a switch or a block; begin the line with SwitchName=");
      return {};
    }
    if (switch_name && block_name) return bad(line, "SwitchName and BlockName stand on one line; write two");
    Node node{.name = std::string(switch_name ? *switch_name : *block_name),
              .line = line,
              .is_block = block_name.has_value(),
              .switches = {},
              .nodes = {}};
    const char* const key = node.is_block ? "BlockName" : "SwitchName";
    if (const auto one = names(line, key, node.name); !one) {
      return fail(one.error());
    } else if (one->size() != 1) {
      return bad(line, fmt::format("{}={} is {} names; give each a line of its own", key, quoted(node.name),
                                   one->size()));
    }
    if (node.is_block && switches) return bad(line, "Switches of a block; blocks have Nodes only");
    if (switches.has_value() == nodes.has_value()) {
      return bad(line, fmt::format("{}={} has {}; write {}", key, quoted(node.name),
                                   nodes ? "both Switches and Nodes" : "neither Switches nor Nodes",
                                   node.is_block ? "Nodes=" : "Switches= or Nodes="));
    }
    auto children = names(line, nodes ? "Nodes" : "Switches", nodes ? *nodes : *switches);
    if (!children) return fail(children.error());
    (nodes ? node.nodes : node.switches) = std::move(*children);
    for (const std::string& host : node.nodes) {
      if (!hosts_.insert(host).second)
        return bad(line,
                   fmt::format("Nodes: {} occurs twice in the file; a node has one switch", quoted(host)));
    }
    if (!by_name_.emplace(node.name, nodes_.size()).second)
      return bad(line,
                 fmt::format("{}={} occurs twice; write all of it on one line", key, quoted(node.name)));
    nodes_.push_back(std::move(node));
    return {};
  }

  /// A hostlist's names, within what is left of the file's.
  Result<std::vector<std::string>> names(std::size_t line, std::string_view key, std::string_view value) {
    const auto list = Hostlist::parse(value);
    if (!list) return bad(line, fmt::format("{}: {}", key, list.error().message));
    if (list->size() > kMaxImportedNames - num_names_) {
      return bad(line, fmt::format("{}={} stands for {} names; a file may have {} in all", key, quoted(value),
                                   list->size(), kMaxImportedNames));
    }
    num_names_ += list->size();
    return list->expand(kMaxImportedNames);
  }

  /// Nodes of a leaf, leaves, ...: from below upwards.
  using Tiers = std::vector<std::size_t>;

  Result<Tiers> block_tiers() {
    std::vector<std::size_t> all(nodes_.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    const auto size = children_of(all);
    if (!size) return fail(size.error());
    return Tiers{*size, nodes_.size()};
  }

  Result<Tiers> tree_tiers() {
    for (const Node& node : nodes_) {
      for (const std::string& child : node.switches) {
        const auto found = by_name_.find(child);
        if (found == by_name_.end()) {
          return bad(node.line, fmt::format("Switches: {} has no line of its own; add SwitchName={}",
                                            quoted(child), child));
        }
        Node& below = nodes_[found->second];
        if (below.has_parent)
          return bad(node.line,
                     fmt::format("Switches: {} is below another switch, too; name it once", quoted(child)));
        below.has_parent = true;
      }
    }
    std::vector<std::size_t> tier;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!nodes_[i].has_parent) tier.push_back(i);
    }
    if (tier.empty())
      return bad(nodes_.front().line, "every switch is below another, in a circle; one must be on top");
    if (tier.size() > 1) {
      return bad(nodes_[tier[1]].line,
                 fmt::format("SwitchName={} and {} are both on top; add a switch with Switches={},{}",
                             quoted(nodes_[tier[1]].name), quoted(nodes_[tier[0]].name), nodes_[tier[0]].name,
                             nodes_[tier[1]].name));
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
    // Whatever is not below the top is below itself.
    if (seen < nodes_.size())
      return bad(nodes_.front().line,
                 "some switches are below one another in a circle; one must be on top of all");
    return tiers;
  }

  /// How many children each of a tier has; at the lowest one, their nodes become the servers.
  Result<std::size_t> children_of(const std::vector<std::size_t>& tier) {
    const Node& first = nodes_[tier.front()];
    const auto count = [](const Node& node) { return node.nodes.size() + node.switches.size(); };
    for (const std::size_t i : tier) {
      const Node& node = nodes_[i];
      if (count(node) == count(first) && node.nodes.empty() == first.nodes.empty()) continue;
      const auto what = [&](const Node& each) {
        return fmt::format("{} has {} {}", quoted(each.name), count(each),
                           each.nodes.empty() ? "switches" : "nodes");
      };
      return bad(
          node.line,
          fmt::format(
              "{}, and {} (line {}); the switches of a tier must have equally many of one kind: import "
              "a file with those of the job only, or name a topology with -t",
              what(node), what(first), first.line),
          Code::kUnsupported);
    }
    for (const std::size_t i : tier)
      result_.nodes.insert(result_.nodes.end(), nodes_[i].nodes.begin(), nodes_[i].nodes.end());
    return count(first);
  }

  Result<std::string> spec_of(Tiers tiers) {
    std::erase(tiers, 1U);
    if (tiers.empty()) return std::string("switch:1");
    if (tiers.size() == 1) return fmt::format("switch:{}", tiers[0]);
    if (tiers.size() == 2) return fmt::format("leafspine:{},{}", tiers[1], tiers[0]);
    if (tiers.size() == 3 && tiers[0] == tiers[1] && tiers[2] == 2 * tiers[0])
      return fmt::format("fattree:{}", tiers[2]);
    return fail(
        Code::kUnsupported,
        fmt::format(
            "{}: tiers of {} from below upwards are no topology here; three tiers are fattree:k, of k/2, "
            "k/2 and k; -t leafspine:{},{} takes all leaf switches for equally far from each other",
            name_, fmt::join(tiers, ", "), result_.nodes.size() / tiers[0], tiers[0]));
  }

  std::string name_;
  std::string_view text_;
  SlurmTopology result_;
  std::vector<Node> nodes_;
  std::unordered_map<std::string, std::size_t> by_name_;
  std::unordered_set<std::string> hosts_;
  std::uint64_t num_names_ = 0;
};

}  // namespace

Result<SlurmTopology> read_slurm_topology(std::string_view name, std::string_view text) {
  return SlurmReader(name, text).read();
}

}  // namespace hips::topology
