#include <algorithm>
#include <array>
#include <initializer_list>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "topology/cabling/node_role.hpp"
#include "topology/cabling/text_lines.hpp"
#include "topology/clusters/level_rates.hpp"
#include "topology/clusters/slurm.hpp"
#include "topology/clusters/slurm_nodes.hpp"
#include "topology/clusters/slurm_torus.hpp"
#include "topology/clusters/slurm_tree.hpp"
#include "topology/formats/file_values.hpp"
#include "topology/formats/parse.hpp"
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
  SlurmYamlReader(std::string_view name, const SlurmOptions& options)
      : values_(name), name_(name), options_(options), which_(options.which) {}

  Result<ClusterTopology> read(const YamlNode& root) {
    if (root.kind != YamlNode::Kind::kSequence || root.items.empty())
      return values_.bad(root, "the file must be a list of topologies; begin with \"- topology: NAME\"");
    const auto chosen = choose(root);
    if (!chosen) return fail(chosen.error());
    const auto kind = kind_of(**chosen);
    if (!kind) return fail(kind.error());
    const YamlNode& what = **kind;
    if (what.key == "tree") return read_tree(what, "switches", false);
    if (what.key == "block") return read_tree(what, "blocks", true);
    if (what.key == "ring") return read_rings(what);
    if (what.key == "torus3d") return read_toruses(what);
    return read_flat(what);
  }

 private:
  /// YAML 1.1 has several notations for booleans.
  [[nodiscard]] Result<bool> boolean(const YamlNode& node) const {
    const auto text = values_.text(node);
    if (!text) return fail(text.error());
    const std::string word = in_lower_case(*text);
    if (is_one_of(word, {"true", "yes", "on"})) return true;
    if (is_one_of(word, {"false", "no", "off"})) return false;
    return values_.bad(node, fmt::format("{} is {}; it must be true or false", node.key, in_quotes(*text)));
  }

  /// Is which_ the name of the topology, or its name with ":UNIT"?
  [[nodiscard]] bool is_called(std::string_view topology) const {
    return which_ == topology || (which_.size() > topology.size() && which_.starts_with(topology) &&
                                  which_[topology.size()] == ':');
  }

  static const YamlNode* value_of(const YamlNode& node, std::string_view key) {
    return node.kind == YamlNode::Kind::kMapping ? FileValues::find(node, key) : nullptr;
  }

  Result<const YamlNode*> choose(const YamlNode& root) {
    const YamlNode* chosen = nullptr;
    std::vector<std::string> names;
    for (const YamlNode& topology : root.items) {
      const YamlNode* name = value_of(topology, "topology");
      if (name == nullptr)
        return values_.bad(topology, "the topology has no name; begin with \"- topology: NAME\"");
      const auto text = values_.text(*name);
      if (!text) return fail(text.error());
      Result<bool> is_wanted = is_called(*text);
      const YamlNode* const is_default = FileValues::find(topology, "cluster_default");
      if (which_.empty() && is_default != nullptr) is_wanted = boolean(*is_default);
      if (!is_wanted) return fail(is_wanted.error());
      if (*is_wanted && chosen == nullptr) chosen = &topology;
      names.push_back(in_quotes(*text));
    }
    if (chosen == nullptr && which_.empty() && names.size() == 1) chosen = &root.items.front();
    if (chosen != nullptr) {
      const std::string& called = value_of(*chosen, "topology")->scalar;
      if (which_.size() > called.size()) unit_ = which_.substr(called.size() + 1);
      return chosen;
    }
    constexpr std::size_t kMostShown = 8;
    names.resize(std::min(names.size(), kMostShown));
    return values_.bad(
        root,
        which_.empty()
            ? fmt::format("no topology has cluster_default: true; choose one of {} by --slurm-topology NAME",
                          fmt::join(names, ", "))
            : fmt::format("unknown topology {}; expected one of {}", in_quotes(which_),
                          fmt::join(names, ", ")));
  }

  Result<const YamlNode*> kind_of(const YamlNode& topology) {
    const YamlNode* kind = nullptr;
    for (const YamlNode& value : topology.items) {
      if (value.key == "topology" || value.key == "cluster_default") continue;
      if (std::ranges::find(kKinds, value.key) == kKinds.end()) {
        note(value, "is unknown; ignored");
      } else if (kind != nullptr) {
        return values_.bad(value, fmt::format("the topology has {} and {}; keep one", kind->key, value.key));
      } else {
        kind = &value;
      }
    }
    if (kind != nullptr) return kind;
    return values_.bad(
        topology, fmt::format("the topology has no wiring; expected one of {}", fmt::join(kKinds, ", ")));
  }

  void note(const YamlNode& value, std::string_view what) {
    notes_.push_back(fmt::format("{}: line {}: {} {}", name_, value.line, in_quotes(value.key), what));
  }

  /// Any two nodes are equally far apart, as on one switch.
  Result<ClusterTopology> read_flat(const YamlNode& flat) {
    auto nodes = all_slurm_nodes(options_);
    if (!nodes) return fail(nodes.error());
    if (nodes->empty()) {
      return values_.bad(
          flat,
          "a flat topology has all nodes of slurm.conf, which is not beside the file; name those of the job with "
          "--nodelist, or give -t switch:N");
    }
    auto topology = parse(fmt::format("switch:{}", nodes->size()));
    if (!topology) return fail(topology.error());
    ClusterTopology made{
        .topology = std::move(*topology), .nodes = *std::move(nodes), .notes = std::move(notes_)};
    if (auto given = give_level_rates(made, name_, options_.tier_rates); !given) return fail(given.error());
    return made;
  }

  Result<ClusterTopology> read_tree(const YamlNode& tree, const char* list_key, bool blocks) {
    SlurmTree made({std::string(name_)}, kYamlWords);
    if (!unit_.empty()) {
      return values_.bad(
          tree, fmt::format("the topology is a {}, which has no units; leave \":{}\" out", tree.key, unit_));
    }
    const auto found = list_of(tree, list_key, blocks ? "block" : "switch");
    if (!found) return fail(found.error());
    const YamlNode* list = *found;
    for (const YamlNode& value : tree.items) {
      if (&value != list)
        note(value,
             value.key == "block_sizes" ? "does not describe the wiring; ignored" : "is unknown; ignored");
    }
    for (const YamlNode& item : list->items) {
      const auto entry = read_entry(item, blocks);
      if (!entry) return fail(entry.error());
      if (auto added = made.add(*entry); !added) return fail(added.error());
    }
    return made.finish(options_, std::move(notes_));
  }

  Result<const YamlNode*> list_of(const YamlNode& node, std::string_view key, std::string_view entry) const {
    const YamlNode* list = value_of(node, key);
    if (list != nullptr && list->kind == YamlNode::Kind::kSequence && !list->items.empty()) return list;
    return values_.bad(list == nullptr ? node : *list,
                       fmt::format("{} has no list of {}; write \"{}:\" and below it \"- {}: NAME\"",
                                   node.key, key, key, entry));
  }

  Result<ClusterTopology> read_rings(const YamlNode& node) {
    const auto list = list_of(node, "rings", "ring");
    if (!list) return fail(list.error());
    SlurmToruses made({std::string(name_)}, "ring");
    for (const YamlNode& item : (*list)->items) {
      SlurmUnit unit{.line = item.line, .regions = {{.line = item.line}}};
      if (auto named = read_name(item, "ring", unit.name); !named) return fail(named.error());
      if (auto nodes = read_nodes(item, "the ring", unit.regions[0]); !nodes) return fail(nodes.error());
      note_others(item, {"ring", "nodes"}, {});
      if (auto added = made.add(unit); !added) return fail(added.error());
    }
    return made.finish(unit_, options_, std::move(notes_));
  }

  Result<ClusterTopology> read_toruses(const YamlNode& node) {
    const auto list = list_of(node, "toruses", "name");
    if (!list) return fail(list.error());
    SlurmToruses made({std::string(name_)}, "torus");
    for (const YamlNode& item : (*list)->items) {
      const auto unit = read_torus(item);
      if (!unit) return fail(unit.error());
      if (auto added = made.add(*unit); !added) return fail(added.error());
    }
    return made.finish(unit_, options_, std::move(notes_));
  }

  Result<SlurmUnit> read_torus(const YamlNode& item) {
    SlurmUnit unit{.line = item.line};
    if (auto named = read_name(item, "name", unit.name); !named) return fail(named.error());
    const auto dims = read_triple(item, "dims", "the torus", 1);
    if (!dims) return fail(dims.error());
    unit.dims = *dims;
    const YamlNode* nodes = FileValues::find(item, "nodes");
    const YamlNode* regions = FileValues::find(item, "regions");
    if ((nodes == nullptr) == (regions == nullptr)) {
      return values_.bad(
          item, fmt::format("the torus has {} nodes {} regions; write one of them",
                            nodes == nullptr ? "neither" : "both", nodes == nullptr ? "nor" : "and"));
    }
    if (nodes != nullptr) {
      SlurmRegion all{.line = nodes->line, .dims = *dims};
      if (auto read = read_nodes(item, "the torus", all); !read) return fail(read.error());
      unit.regions.push_back(std::move(all));
    } else {
      if (auto list = values_.sequence(*regions); !list) return fail(list.error());
      if (regions->items.empty()) return values_.bad(*regions, "regions is empty; write nodes: instead");
    }
    for (const YamlNode& region : regions == nullptr ? std::vector<YamlNode>{} : regions->items) {
      const auto read = read_region(region);
      if (!read) return fail(read.error());
      unit.regions.push_back(*read);
    }
    note_others(item, {"name", "dims", "nodes", "regions"}, "placements");
    return unit;
  }

  Result<SlurmRegion> read_region(const YamlNode& item) {
    SlurmRegion region{.line = item.line};
    const auto anchor = read_triple(item, "anchor", "the region", 0),
               dims = read_triple(item, "dims", "the region", 1);
    if (!anchor) return fail(anchor.error());
    if (!dims) return fail(dims.error());
    region.anchor = *anchor;
    region.dims = *dims;
    if (auto read = read_nodes(item, "the region", region); !read) return fail(read.error());
    note_others(item, {"anchor", "dims", "nodes"}, {});
    return region;
  }

  Result<void> read_name(const YamlNode& item, const char* key, std::string& name) const {
    const YamlNode* value = value_of(item, key);
    if (value == nullptr)
      return values_.bad(item, fmt::format("the entry has no {}; begin with \"- {}: NAME\"", key, key));
    const auto text = values_.text(*value);
    if (!text) return fail(text.error());
    name = *text;
    return {};
  }

  Result<void> read_nodes(const YamlNode& item, std::string_view what, SlurmRegion& region) const {
    const YamlNode* nodes = value_of(item, "nodes");
    if (nodes == nullptr) {
      return values_.bad(
          item,
          fmt::format("{} has no nodes; write nodes: and a hostlist, in the order of the places", what));
    }
    const auto text = hostlist_of(*nodes);
    if (!text) return fail(text.error());
    region.nodes = *text;
    region.line = nodes->line;
    return {};
  }

  /// {x: 4, y: 4, z: 2}
  Result<SlurmTriple> read_triple(const YamlNode& item, std::string_view key, std::string_view what,
                                  std::int64_t least) const {
    const YamlNode* triple = value_of(item, key);
    if (triple == nullptr)
      return values_.bad(item, fmt::format("{0} has no {1}; write {1}: {{x: 4, y: 4, z: 2}}", what, key));
    static constexpr auto kAxes = std::to_array<std::string_view>({"x", "y", "z"});
    if (auto known = values_.keys(*triple, key, kAxes); !known) return fail(known.error());
    SlurmTriple read{};
    for (std::size_t d = 0; d < kAxes.size(); ++d) {
      const YamlNode* side = FileValues::find(*triple, kAxes[d]);
      if (side == nullptr)
        return values_.bad(*triple, fmt::format("{} has no {}; write all of x, y and z", key, kAxes[d]));
      const auto number = values_.number(*side, least, kMostSlurmSide);
      if (!number) return fail(number.error());
      read[d] = *number;
    }
    return read;
  }

  /// Notes the keys that are ignored: `slurms`, which Slurm knows, and others.
  void note_others(const YamlNode& item, std::initializer_list<std::string_view> known,
                   std::string_view slurms) {
    for (const YamlNode& value : item.items) {
      if (std::ranges::find(known, value.key) != known.end()) continue;
      note(value, value.key == slurms ? "does not describe the wiring; ignored" : "is unknown; ignored");
    }
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
        note(value, "is unknown; ignored");
        continue;
      }
      const auto text = hostlist_of(value);
      if (!text) return fail(text.error());
      if (&value == name) {
        entry.name = *text;
      } else if (!text->empty() || !is_block) {
        (value.key == "nodes" ? entry.nodes : entry.switches) = *text;
      }
    }
    return entry;
  }

  /// Reads a hostlist, or a list of them.
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
  std::string_view name_;
  const SlurmOptions& options_;
  std::string_view which_;
  std::string unit_;  ///< the chosen ring or torus of the topology; "": the only one
  std::vector<std::string> notes_;
};

}  // namespace

Result<ClusterTopology> read_slurm_yaml(std::string_view name, std::string_view text,
                                        const SlurmOptions& options) {
  const auto root = read_yaml(name, text);
  if (!root) return fail(root.error());
  return SlurmYamlReader(name, options).read(*root);
}

}  // namespace hips::topology
