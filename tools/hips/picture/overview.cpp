#include "tools/hips/picture/overview.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace hips::picture {
namespace {

using Key = std::vector<std::size_t>;

/// Puts nodes together, stage by stage, by keys that equal nodes share.
class Folding {
 public:
  explicit Folding(const PicturedCables& cables) : in_(cables), of_(cables.cabling.nodes.size()) {
    for (std::size_t i = 0; i < in_.cabling.cables.size(); ++i) {
      const topology::Cable& cable = in_.cabling.cables[i];
      if (in_.tiers[cable.a.node] == SIZE_MAX || in_.tiers[cable.b.node] == SIZE_MAX) continue;
      of_[cable.a.node].push_back(i);
      if (cable.a.node != cable.b.node) of_[cable.b.node].push_back(i);
    }
    for (std::size_t node = 0; node < of_.size(); ++node) {
      if (in_.tiers[node] == SIZE_MAX) continue;
      if (in_.tiers[node] >= by_tier_.size()) by_tier_.resize(in_.tiers[node] + 1);
      by_tier_[in_.tiers[node]].push_back(node);
    }
    start();
  }

  void start() {
    box_.resize(of_.size());
    std::iota(box_.begin(), box_.end(), std::size_t{0});
  }

  /// Servers of the same boxes.
  void servers_of_equal_switches() {
    if (by_tier_.empty()) return;
    together(by_tier_[0], [&](std::size_t node) { return server_key(node); });
  }

  /// Switches with the same boxes below.
  void switches_above_equal_boxes() {
    for (std::size_t tier = 2; tier < by_tier_.size(); ++tier) {
      together(by_tier_[tier], [&](std::size_t node) {
        Key key = neighbours(node, [&](std::size_t other) {
          return in_.tiers[other] < tier ? box_[other] : in_.tiers[other] == tier ? other : kSkipped;
        });
        key.push_back(unusual(node));
        return key;
      });
    }
  }

  /// Switches with the same ones above; and, if `equal`, with as many below.
  void switches_of_equal_parents(bool equal) {
    std::vector<std::size_t> colour(of_.size(), 0);
    for (std::size_t tier = 1; tier < by_tier_.size(); ++tier) {
      std::map<Key, std::size_t> colours;
      for (const std::size_t node : by_tier_[tier]) {
        const Key below = neighbours(
            node, [&](std::size_t other) { return in_.tiers[other] < tier ? colour[other] : kSkipped; });
        colour[node] = colours.try_emplace(below, colours.size()).first->second;
      }
      together(by_tier_[tier], [&](std::size_t node) {
        Key key =
            neighbours(node, [&](std::size_t other) { return in_.tiers[other] < tier ? kSkipped : other; });
        key.push_back(equal ? colour[node] : unusual(node));
        return key;
      });
    }
  }

  void whole_tiers() {
    for (const auto& nodes : by_tier_) together(nodes, [&](std::size_t node) { return Key{unusual(node)}; });
  }

  /// Are there at most so many boxes in each tier, and lines between boxes?
  [[nodiscard]] bool fits(std::size_t most, std::size_t most_lines) const {
    const auto is_box = [&](std::size_t node) { return box_[node] == node; };
    for (const auto& nodes : by_tier_)
      if (static_cast<std::size_t>(std::ranges::count_if(nodes, is_box)) > most) return false;
    std::set<std::pair<std::size_t, std::size_t>> lines;
    for (std::size_t i = 0; i < in_.cabling.cables.size() && lines.size() <= most_lines; ++i) {
      const topology::Cable& cable = in_.cabling.cables[i];
      lines.insert(std::minmax({box_[cable.a.node], box_[cable.b.node]}));
    }
    return lines.size() <= most_lines;
  }

  [[nodiscard]] Overview overview() const {
    Overview result;
    std::vector<std::size_t> number(box_.size());
    for (const auto& nodes : by_tier_) {
      for (const std::size_t node : nodes) {
        if (box_[node] == node) {
          number[node] = result.boxes.size();
          result.boxes.push_back(
              {.is_switch = in_.cabling.nodes[node].kind == topology::CabledNode::Kind::kSwitch,
               .tier = in_.tiers[node]});
        }
        result.boxes[number[box_[node]]].nodes.push_back(node);
      }
    }
    std::map<std::tuple<std::size_t, std::size_t, CableState>, std::vector<std::size_t>> lines;
    for (std::size_t i = 0; i < in_.cabling.cables.size(); ++i) {
      const topology::Cable& cable = in_.cabling.cables[i];
      if (in_.tiers[cable.a.node] == SIZE_MAX || in_.tiers[cable.b.node] == SIZE_MAX) continue;
      const auto ends = std::minmax({number[box_[cable.a.node]], number[box_[cable.b.node]]});
      if (ends.first == ends.second) {
        ++result.boxes[ends.first].inner_cables;
      } else {
        lines[{ends.first, ends.second, in_.states[i]}].push_back(i);
      }
    }
    for (auto& [line, cables] : lines)
      result.cables.push_back({std::get<0>(line), std::get<1>(line), std::get<2>(line), std::move(cables)});
    for (OverviewBox& box : result.boxes)
      if (!box.is_switch) count_at_switches(box);
    return result;
  }

 private:
  static constexpr std::size_t kSkipped = SIZE_MAX;

  /// The states of its cables together: 0 if all are usual.
  [[nodiscard]] std::size_t unusual(std::size_t node) const {
    std::size_t found = 0;
    for (const std::size_t cable : of_[node]) found |= static_cast<std::size_t>(in_.states[cable]);
    return found;
  }

  /// What `name` calls the other ends of a node's cables, with the states of the cables.
  template <typename Name>
  [[nodiscard]] Key neighbours(std::size_t node, Name&& name) const {
    std::vector<std::pair<std::size_t, std::size_t>> ends;
    for (const std::size_t i : of_[node]) {
      const topology::Cable& cable = in_.cabling.cables[i];
      const std::size_t called = name(cable.a.node == node ? cable.b.node : cable.a.node);
      if (called != kSkipped) ends.emplace_back(called, static_cast<std::size_t>(in_.states[i]));
    }
    std::ranges::sort(ends);
    Key key;
    for (const auto& [other, state] : ends) {
      key.push_back(other);
      key.push_back(state);
    }
    return key;
  }

  [[nodiscard]] Key server_key(std::size_t node) const {
    Key key = neighbours(
        node, [&](std::size_t other) { return in_.tiers[other] == 0 && !in_.relays ? other : box_[other]; });
    if (!in_.relays) return key;
    key = {unusual(node)};
    if (of_[node].empty()) return key;
    const topology::Cable& first = in_.cabling.cables[of_[node].front()];
    key.push_back(box_[first.a.node == node ? first.b.node : first.a.node]);
    return key;
  }

  /// Nodes with equal keys get the box of the first.
  template <typename KeyOf>
  void together(const std::vector<std::size_t>& nodes, KeyOf&& key_of) {
    std::map<Key, std::size_t> first;
    std::vector<std::size_t> boxes;
    for (const std::size_t node : nodes) boxes.push_back(first.try_emplace(key_of(node), node).first->second);
    for (std::size_t i = 0; i < nodes.size(); ++i) box_[nodes[i]] = boxes[i];
  }

  void count_at_switches(OverviewBox& box) const {
    std::map<std::size_t, std::size_t> at;
    for (const std::size_t server : box.nodes) {
      std::vector<std::size_t> switches;
      for (const std::size_t i : of_[server]) {
        const topology::Cable& cable = in_.cabling.cables[i];
        const std::size_t other = cable.a.node == server ? cable.b.node : cable.a.node;
        if (in_.tiers[other] > 0) switches.push_back(other);
      }
      std::ranges::sort(switches);
      const auto twice = std::ranges::unique(switches);
      switches.erase(twice.begin(), twice.end());
      for (const std::size_t each : switches) ++at[each];
    }
    for (const auto& [node, count] : at) {
      box.fewest = box.fewest == 0 ? count : std::min(box.fewest, count);
      box.most = std::max(box.most, count);
    }
  }

  const PicturedCables& in_;
  std::vector<std::vector<std::size_t>> of_;       ///< by node: cables
  std::vector<std::vector<std::size_t>> by_tier_;  ///< nodes, ascending
  std::vector<std::size_t> box_;                   ///< by node: the first node of its box
};

/// The stages, from every node by itself to whole tiers.
constexpr int kStages = 6;

void fold(Folding& folding, int stage) {
  folding.start();
  if (stage == kStages - 1) return folding.whole_tiers();
  if (stage >= 3) folding.switches_of_equal_parents(stage == 3);
  if (stage >= 1) folding.servers_of_equal_switches();
  if (stage >= 2) folding.switches_above_equal_boxes();
}

}  // namespace

Overview overview_of(const PicturedCables& cables) {
  Folding folding(cables);
  // One row of each tier is best; several rows of boxes that are told apart are better than ranges.
  constexpr std::size_t kMostLines = 120, kMostLinesOfRows = 300;
  for (int stage = 0; stage <= 3; ++stage) {
    fold(folding, stage);
    if (folding.fits(kMostInRow, kMostLines)) return folding.overview();
  }
  // Where servers relay, lines would pass behind the rows.
  for (int stage = 1; stage <= 4 && !cables.relays; ++stage) {
    fold(folding, stage);
    if (folding.fits(kMostInTier, kMostLinesOfRows)) return folding.overview();
  }
  fold(folding, kStages - 1);
  return folding.overview();
}

}  // namespace hips::picture
