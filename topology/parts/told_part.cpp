#include "topology/parts/told_part.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "topology/levels.hpp"

namespace hips::topology {
namespace {

class PartTelling {
 public:
  PartTelling(const TopologyFile& whole, const Topology& part, const PartOrigin& origin, ToldWiring told)
      : whole_(whole),
        part_(part),
        origin_(origin),
        told_(std::move(told)),
        old_(whole.topology.graph()),
        now_(part.graph()),
        in_use_(those_in_use(now_)),
        node_(now_.nodes.size(), -1) {}

  /// False: which switch of the whole is which one of the part cannot be told.
  bool run() {
    for (std::size_t i = 0; i < old_.links.size(); ++i) old_link_.emplace(ends_in_whole(old_.links[i]), i);
    if (!find_nodes()) return false;
    leave_out_needless();
    if (part_.family != Family::kGraph && !whole_.told.switch_names.empty() && !name_switches()) return false;
    mark_assumed();
    if (!told_.assumed_switches.empty()) told_.replaced_switches = whole_.told.replaced_switches;
    copy_cables();
    return true;
  }

  ToldWiring take() { return std::move(told_); }

 private:
  /// A server and its NIC, or two switches.
  using Ends = std::tuple<std::int64_t, Rail, std::int64_t>;

  [[nodiscard]] const GraphNode& old_node(std::int64_t node) const {
    return old_.nodes[static_cast<std::size_t>(node)];
  }
  [[nodiscard]] const GraphNode& now_node(std::int64_t node) const {
    return now_.nodes[static_cast<std::size_t>(node)];
  }
  std::int64_t& origin_of(std::int64_t node) { return node_[static_cast<std::size_t>(node)]; }

  [[nodiscard]] Ends ends_in_whole(const GraphLink& link) const {
    if (!old_node(link.a).is_switch) return {link.a, link.a_port, -1};
    return {std::min(link.a, link.b), kNoRail, std::max(link.a, link.b)};
  }

  /// The link of the whole that a link of the part is; -1: it is not known.
  std::int64_t link_in_whole(const GraphLink& link) {
    Ends ends{-1, kNoRail, -1};
    const std::int64_t a = origin_of(link.a), b = origin_of(link.b);
    if (!now_node(link.a).is_switch) {
      const auto rail =
          std::ranges::find(origin_.new_rail, link.a_port, &std::pair<const Rail, Rail>::second);
      if (rail == origin_.new_rail.end()) return -1;
      ends = {a, rail->first, -1};
    } else if (a >= 0 && b >= 0) {
      ends = {std::min(a, b), kNoRail, std::max(a, b)};
    }
    const auto found = old_link_.find(ends);
    return found == old_link_.end() ? -1 : static_cast<std::int64_t>(found->second);
  }

  bool find_nodes() {
    for (std::size_t server = 0; server < origin_.servers.size(); ++server)
      node_[server] = origin_.servers[server];
    const bool is_same_shape = part_.family == whole_.topology.family &&
                               part_.num_whole_servers() == whole_.topology.num_whole_servers() &&
                               part_.num_switches == whole_.topology.num_switches;
    if (part_.family == Family::kGraph || is_same_shape) {
      find_by_name();
      return true;
    }
    return find_at_servers() && find_above();
  }

  /// Switches of the same shape and of a graph keep their names; those of a graph made of another family are those of the file.
  void find_by_name() {
    const bool has_told_names = part_.family == Family::kGraph;
    std::unordered_map<std::string_view, std::int64_t> by_name;
    for (std::size_t i = 0; i < old_.nodes.size(); ++i) {
      const GraphNode& node = old_.nodes[i];
      if (node.is_switch)
        by_name.emplace(has_told_names ? name_in_links(whole_.told, node) : node.name,
                        static_cast<std::int64_t>(i));
    }
    for (std::size_t i = 0; i < now_.nodes.size(); ++i) {
      const auto found = by_name.find(now_.nodes[i].name);
      if (now_.nodes[i].is_switch && found != by_name.end()) node_[i] = found->second;
    }
  }

  bool find_at_servers() {
    for (const GraphLink& link : now_.links) {
      if (now_node(link.a).is_switch || !now_node(link.b).is_switch) continue;
      const std::int64_t old = link_in_whole(link);
      if (old < 0 || !set_origin(link.b, old_.links[static_cast<std::size_t>(old)].b)) return false;
    }
    return true;
  }

  /// The switches above another one are the same, in their order, if they are as many.
  bool find_above() {
    std::map<std::int64_t, std::vector<std::int64_t>> old_above, now_above;
    for (const GraphLink& link : old_.links)
      if (old_node(link.a).is_switch) old_above[link.a].push_back(link.b);
    for (const GraphLink& link : now_.links)
      if (now_node(link.a).is_switch) now_above[link.a].push_back(link.b);
    for (const auto& [lower, above] : now_above) {
      const auto found = old_above.find(origin_of(lower));
      if (found == old_above.end() || found->second.size() != above.size()) continue;
      for (std::size_t i = 0; i < above.size(); ++i)
        if (!set_origin(above[i], found->second[i])) return false;
    }
    return true;
  }

  [[nodiscard]] bool is_assumed_in_whole(std::size_t node) const {
    return node_[node] >= 0 && whole_.told.assumed_switches.contains(old_node(node_[node]).id);
  }

  /// Servers of one switch need no switches above it that nobody has told.
  void leave_out_needless() {
    std::set<std::int64_t> at_servers;
    for (const GraphLink& link : now_.links)
      if (!now_node(link.a).is_switch) at_servers.insert(link.b);
    if (at_servers.size() > 1) return;
    for (std::size_t i = 0; i < now_.nodes.size(); ++i)
      if (is_assumed_in_whole(i)) in_use_[i] = false;
  }

  bool set_origin(std::int64_t node, std::int64_t old) {
    if (origin_of(node) >= 0) return origin_of(node) == old;
    origin_of(node) = old;
    return true;
  }

  bool name_switches() {
    std::set<std::string_view> taken;
    for (std::size_t i = 0; i < now_.nodes.size(); ++i) {
      if (!now_.nodes[i].is_switch) continue;
      const std::string& name =
          node_[i] < 0 ? now_.nodes[i].name : switch_name(whole_.told, old_node(node_[i]));
      if (in_use_[i] && !name.empty() && !taken.insert(name).second) return false;
      told_.switch_names.push_back(in_use_[i] ? name : "");
    }
    return true;
  }

  void mark_assumed() {
    for (std::size_t i = 0; i < now_.nodes.size(); ++i) {
      const GraphNode& node = now_.nodes[i];
      if (!node.is_switch || (part_.family != Family::kGraph && !in_use_[i])) continue;
      const bool is_assumed = node_[i] < 0 ? !told_.switch_names.empty() : is_assumed_in_whole(i);
      if (is_assumed) told_.assumed_switches.insert(node.id);
    }
  }

  void copy_cables() {
    const auto old_cables = cables_of_links(whole_.topology, old_, whole_.told);
    const auto now_cables = cables_of_links(part_, now_, told_);
    for (std::size_t i = 0; i < now_.links.size(); ++i) {
      const std::int64_t old = link_in_whole(now_.links[i]);
      if (old < 0) continue;
      const auto& cables = old_cables[static_cast<std::size_t>(old)];
      if (cables.size() != now_cables[i].size() ||
          whole_.told.cables.contains(key_of(old_, old_.links[static_cast<std::size_t>(old)])))
        told_.cables.emplace(key_of(now_, now_.links[i]), cables);
    }
  }

  const TopologyFile& whole_;
  const Topology& part_;
  const PartOrigin& origin_;
  ToldWiring told_;
  Graph old_, now_;
  std::vector<bool> in_use_;        ///< by node of the part
  std::vector<std::int64_t> node_;  ///< of the whole, by node of the part; -1: it is not known
  std::map<Ends, std::size_t> old_link_;
};

}  // namespace

ToldWiring told_of_part(const TopologyFile& whole, const Topology& part, const PartOrigin& origin) {
  ToldWiring of_levels;
  for (std::size_t level = 0; level < origin.levels.size(); ++level) {
    if (whole.told.assumed_rates.contains(origin.levels[level])) of_levels.assumed_rates.insert(level);
    if (whole.told.level_cables.empty()) continue;
    // The lowest level has the cables of servers.
    of_levels.level_cables.push_back(level == 0 ? 1 : whole.told.level_cables[origin.levels[level]]);
  }
  if (std::ranges::all_of(of_levels.level_cables, [](std::int64_t count) { return count == 1; }))
    of_levels.level_cables.clear();
  if (whole.told.empty()) return of_levels;
  try {
    PartTelling telling(whole, part, origin, of_levels);
    if (telling.run()) return telling.take();
  } catch (const Error&) {
    // Too many cables to list.
  }
  of_levels.level_cables.clear();
  return of_levels;
}

}  // namespace hips::topology
