#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "topology/file_values.hpp"
#include "topology/slurm.hpp"
#include "topology/slurm_tree.hpp"
#include "topology/spec.hpp"

namespace hips::topology {
namespace {

constexpr SlurmWords kYamlWords{.switch_name = "switch",
                                .block_name = "block",
                                .switches = "children",
                                .nodes = "nodes",
                                .assign = ": ",
                                .entry = "entry"};

constexpr auto kKinds = std::to_array<std::string_view>({"tree", "block", "flat", "ring", "torus3d"});

class SlurmYamlReader {
 public:
  SlurmYamlReader(std::string_view name, std::string_view which)
      : values_(name), name_(name), which_(which) {}

  Result<SlurmTopology> read(const YamlNode& root) {
    if (root.kind != YamlNode::Kind::kSequence || root.items.empty())
      return values_.bad(root, "the file is no list of topologies; begin with \"- topology: NAME\"");
    const auto chosen = choose(root);
    if (!chosen) return fail(chosen.error());
    const auto kind = kind_of(**chosen);
    if (!kind) return fail(kind.error());
    const YamlNode& what = **kind;
    if (what.key == "tree") return read_tree(what, "switches", false);
    if (what.key == "block") return read_tree(what, "blocks", true);
    const char* instead = what.key == "flat" ? "switch:16" : what.key == "ring" ? "torus:16" : "torus:4x4x4";
    return fail(
        Code::kUnsupported,
        fmt::format("{}: line {}: a {} topology does not say which NIC leads where; name one with -t, "
                    "such as {}, and its hosts in a topology file",
                    name_, what.line, what.key, instead));
  }

 private:
  /// YAML 1.1 writes booleans in more ways than one; Slurm's own examples in two.
  static bool is_true(const YamlNode* node) {
    return node != nullptr && (node->scalar == "true" || node->scalar == "True" || node->scalar == "TRUE");
  }

  static const YamlNode* value_of(const YamlNode& node, std::string_view key) {
    return node.kind == YamlNode::Kind::kMapping ? FileValues::find(node, key) : nullptr;
  }

  Result<const YamlNode*> choose(const YamlNode& root) const {
    const YamlNode* chosen = nullptr;
    std::vector<std::string> names;
    for (const YamlNode& topology : root.items) {
      const YamlNode* name = value_of(topology, "topology");
      if (name == nullptr)
        return values_.bad(topology, "the topology has no name; begin with \"- topology: NAME\"");
      const auto text = values_.text(*name);
      if (!text) return fail(text.error());
      const bool wanted =
          which_.empty() ? is_true(FileValues::find(topology, "cluster_default")) : *text == which_;
      if (wanted && chosen == nullptr) chosen = &topology;
      names.push_back(quoted(*text));
    }
    if (chosen == nullptr && which_.empty() && names.size() == 1) chosen = &root.items.front();
    if (chosen != nullptr) return chosen;
    constexpr std::size_t kMostShown = 8;
    names.resize(std::min(names.size(), kMostShown));
    return values_.bad(
        root,
        which_.empty()
            ? fmt::format("no topology has cluster_default: true; choose one of {} by its name",
                          fmt::join(names, ", "))
            : fmt::format("no topology is called {}; there are {}", quoted(which_), fmt::join(names, ", ")));
  }

  Result<const YamlNode*> kind_of(const YamlNode& topology) {
    const YamlNode* kind = nullptr;
    for (const YamlNode& value : topology.items) {
      if (value.key == "topology" || value.key == "cluster_default") continue;
      if (std::ranges::find(kKinds, value.key) == kKinds.end()) {
        note(value, "is not known; ignored");
      } else if (kind != nullptr) {
        return values_.bad(value,
                           fmt::format("{} and {} stand in one topology; keep one", kind->key, value.key));
      } else {
        kind = &value;
      }
    }
    if (kind != nullptr) return kind;
    return values_.bad(topology,
                       fmt::format("the topology has none of {}; write one", fmt::join(kKinds, ", ")));
  }

  void note(const YamlNode& value, std::string_view what) {
    notes_.push_back(fmt::format("{}: line {}: {} {}", name_, value.line, quoted(value.key), what));
  }

  Result<SlurmTopology> read_tree(const YamlNode& tree, const char* list_key, bool blocks) {
    SlurmTree made(name_, kYamlWords);
    const YamlNode* list = value_of(tree, list_key);
    if (list == nullptr || list->kind != YamlNode::Kind::kSequence || list->items.empty()) {
      return values_.bad(list == nullptr ? tree : *list,
                         fmt::format("{} has no list of {}; write \"{}:\" and below it \"- {}: NAME\"",
                                     tree.key, list_key, list_key, blocks ? "block" : "switch"));
    }
    for (const YamlNode& value : tree.items) {
      if (&value != list)
        note(value, value.key == "block_sizes" ? "says nothing of the wiring" : "is not known; ignored");
    }
    for (const YamlNode& item : list->items) {
      const auto entry = read_entry(item, blocks);
      if (!entry) return fail(entry.error());
      if (auto added = made.add(*entry); !added) return fail(added.error());
    }
    return made.finish(std::move(notes_));
  }

  Result<SlurmEntry> read_entry(const YamlNode& item, bool is_block) {
    const char* name_key = is_block ? "block" : "switch";
    const YamlNode* name = value_of(item, name_key);
    if (name == nullptr)
      return values_.bad(item,
                         fmt::format("the entry has no {}; begin with \"- {}: NAME\"", name_key, name_key));
    SlurmEntry entry;
    entry.line = item.line;
    entry.is_block = is_block;
    for (const YamlNode& value : item.items) {
      if (&value != name && value.key != "children" && value.key != "nodes") {
        note(value, "is not known; ignored");
        continue;
      }
      const auto text = hostlist_of(value);
      if (!text) return fail(text.error());
      if (&value == name) {
        entry.name = *text;
      } else {
        (value.key == "nodes" ? entry.nodes : entry.switches) = *text;
      }
    }
    return entry;
  }

  /// A hostlist, or a list of them.
  Result<std::string> hostlist_of(const YamlNode& value) const {
    if (value.kind != YamlNode::Kind::kSequence) return values_.text(value);
    std::string joined;
    for (const YamlNode& part : value.items) {
      const auto text = values_.text(part);
      if (!text) return text;
      joined += (joined.empty() ? "" : ",") + *text;
    }
    return joined;
  }

  FileValues values_;
  std::string_view name_, which_;
  std::vector<std::string> notes_;
};

}  // namespace

Result<SlurmTopology> read_slurm_yaml(std::string_view name, std::string_view text, std::string_view which) {
  const auto root = read_yaml(name, text);
  if (!root) return fail(root.error());
  return SlurmYamlReader(name, which).read(*root);
}

}  // namespace hips::topology
