#include "lib/plan/algorithms/hips.hpp"

// "hips": hierarchical synchronization. Every lane scatters through all levels and gathers back. Lanes differ
// in the order of the levels, so that they use different NICs at any stage.
//
//   BCube(3,1)   lane 0   level 0 | level 1 || level 1 | level 0        stage  0 | 1 || 2 | 3
//                lane 1   level 1 | level 0 || level 0 | level 1               scatter   gather

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "lib/plan/algorithms/algorithms.hpp"
#include "lib/plan/algorithms/options.hpp"
#include "lib/plan/fabric/lane_shares.hpp"
#include "lib/plan/fabric/tree_packing.hpp"
#include "lib/plan/steps/lane_builder.hpp"
#include "lib/plan/steps/shapes.hpp"
#include "lib/plan/wide.hpp"
#include "topology/levels.hpp"
#include "topology/link_rates.hpp"
#include "topology/tiers.hpp"

namespace hips::plan {
namespace {

/// The order in which a lane visits the levels, and which of a level's rails it uses.
struct HierarchyLane {
  std::vector<std::int32_t> levels;
  std::int32_t rail_idx = 0;  ///< of parallel rails, or 0 for "+" and 1 for "-" of a ring of cables
  Fraction begin, end;
};

bool is_network(const Level& level) {
  return level.kind != LevelKind::kNode && level.radix > 1;
}

/// Do levels have rails of their own? If not, one NIC serves all levels, and several lanes would compete for
/// it.
bool levels_have_own_rails(const Topology& topology) {
  std::set<Rail> seen;
  for (const Level& level : topology.levels) {
    if (!is_network(level)) continue;
    for (const Rail rail : level.rails) {
      if (!seen.insert(rail).second) return false;
    }
  }
  return true;
}

class HipsBuilder final : public LaneBuilder {
 public:
  static Result<std::unique_ptr<PrunableBuilder>> make(const Topology& topology, const PlanRequest& request,
                                                       LaneShares shares) {
    auto builder = std::unique_ptr<HipsBuilder>(new HipsBuilder);
    builder->levels_ = topology.levels;
    if (Status status = builder->set_patterns(request); !status.ok()) return fail(std::move(status));
    builder->set_lanes(topology, shares);
    builder->set_shape();
    return builder;
  }

 private:
  HipsBuilder() = default;

  Status set_patterns(const PlanRequest& request) {
    const auto num_network_levels = static_cast<std::size_t>(std::ranges::count_if(levels_, is_network));
    const std::size_t given = request.patterns.size();
    if (given > 1 && given != num_network_levels) {
      return Status::error(
          Code::kInvalidArgument,
          fmt::format("pattern: {} patterns for {} levels; give one for all or one per level", given,
                      num_network_levels));
    }
    std::size_t next = 0;
    for (const Level& level : levels_) {
      LevelPattern pattern;
      if (is_network(level)) {
        if (given > 0) {
          pattern = request.patterns[given == 1 ? 0 : next++];
        } else if (level.kind == LevelKind::kRing) {
          pattern = {Pattern::kRing, Pattern::kRing, 0};
        }
        if (Status status = check_pattern(level, pattern); !status.ok()) return status;
      }
      if (pattern.scatter != Pattern::kPs) pattern.num_leaders = static_cast<std::int32_t>(level.radix);
      patterns_.push_back(pattern);
    }
    return Status::success();
  }

  static Status check_pattern(const Level& level, const LevelPattern& pattern) {
    const bool ps = pattern.scatter == Pattern::kPs || pattern.gather == Pattern::kPs;
    if (ps && pattern.scatter != pattern.gather) {
      return Status::error(
          Code::kInvalidArgument,
          fmt::format("pattern: ps in one phase of {} only; ps must cover both phases of a level",
                      level.name));
    }
    if (ps && (pattern.num_leaders < 1 || pattern.num_leaders > level.radix)) {
      return Status::error(
          Code::kInvalidArgument,
          fmt::format("pattern: invalid ps:{} for {} (valid: ps:1 to ps:{}, the size of its groups)",
                      pattern.num_leaders, level.name, level.radix));
    }
    return Status::success();
  }

  void set_lanes(const Topology& topology, LaneShares shares) {
    std::vector<std::int32_t> inner, network;
    std::int32_t num_parallel = 1;
    for (std::int32_t l = 0; l < static_cast<std::int32_t>(levels_.size()); ++l) {
      const Level& level = levels_[l];
      if (level.radix <= 1) continue;
      (is_network(level) ? network : inner).push_back(l);
      if (!is_network(level)) continue;
      // The two directions of a ring of cables matter to rings, and to a mesh on an even number of servers,
      // where one server is half way round.
      const bool uses_direction =
          level.kind != LevelKind::kRing || uses(l, Pattern::kRing) || level.radix % 2 == 0;
      if (uses_direction)
        num_parallel = std::max(num_parallel, static_cast<std::int32_t>(level.rails.size()));
    }

    std::vector<LaneOrder> orders;
    if (network.empty()) {
      orders.push_back({{}, {0, 1}, {1, 1}});
    } else if (levels_have_own_rails(topology)) {
      std::vector<LevelRate> rates;
      for (const std::int32_t l : network) {
        rates.push_back({levels_[l].radix,
                         levels_[l].bandwidth_bytes_per_s * static_cast<double>(levels_[l].rails.size())});
      }
      orders = shares == LaneShares::kEqual ? equal_orders(rates.size()) : lane_orders(rates);
    } else {
      // One NIC serves all levels: start at the innermost tier, so that the tiers above carry least.
      LaneOrder order{{}, {0, 1}, {1, 1}};
      for (std::int32_t i = 0; i < static_cast<std::int32_t>(network.size()); ++i) order.levels.push_back(i);
      orders.push_back(order);
      num_parallel = 1;
    }

    for (const LaneOrder& order : orders) {
      for (std::int32_t rail_idx = 0; rail_idx < num_parallel; ++rail_idx) {
        const LaneOrder part = part_of(order, rail_idx, num_parallel);
        HierarchyLane lane{inner, rail_idx, part.begin,
                           part.end};  // the ranks of a server come first in every lane
        for (const std::int32_t i : part.levels) lane.levels.push_back(network[i]);
        lanes_.push_back(lane);
      }
    }
  }

  void set_shape() {
    std::int64_t ranks = 1;
    for (const Level& level : levels_) {
      stride_.push_back(ranks);
      ranks *= level.radix;
    }
    shape_.algorithm = "hips";
    shape_.num_ranks = static_cast<Rank>(ranks);
    shape_.neighbours_only = true;

    std::int64_t blocks_per_lane = 1;
    for (std::size_t l = 0; l < levels_.size(); ++l) {
      blocks_per_lane *= patterns_[l].num_leaders;
      const bool direct = uses(static_cast<std::int32_t>(l), Pattern::kMesh) ||
                          uses(static_cast<std::int32_t>(l), Pattern::kPs);
      // A mesh on a side of more than 3 sends through servers in between.
      if (levels_[l].kind == LevelKind::kRing && levels_[l].radix > 3 && direct)
        shape_.neighbours_only = false;
    }
    const auto num_lanes = static_cast<std::int64_t>(lanes_.size());
    shape_.blocks.num_blocks = num_lanes * blocks_per_lane;

    bool equal_shares = true;
    for (std::int64_t p = 0; p < num_lanes; ++p) {
      const HierarchyLane& lane = lanes_[p];
      const BlockRange blocks{p * blocks_per_lane, blocks_per_lane};
      equal_shares = equal_shares && static_cast<Int128>(lane.begin.num) * num_lanes ==
                                         static_cast<Int128>(p) * lane.begin.den;
      shape_.blocks.parts.push_back({blocks, lane.begin, lane.end});
      LaneInfo info{blocks, lane.rail_idx == 1 && has_rings_of_cables() ? -1 : +1, {}};
      std::int32_t steps = 0;
      const auto add_stage = [&](Phase phase, std::int32_t level) {
        const LevelPattern& pattern = patterns_[level];
        const Pattern used = phase == Phase::kScatter ? pattern.scatter : pattern.gather;
        info.stages.push_back({phase, level, used, pattern.num_leaders});
        steps += used == Pattern::kRing ? static_cast<std::int32_t>(levels_[level].radix) - 1 : 1;
      };
      for (std::size_t i = 0; i < lane.levels.size(); ++i) add_stage(Phase::kScatter, lane.levels[i]);
      for (std::size_t i = lane.levels.size(); i-- > 0;) add_stage(Phase::kGather, lane.levels[i]);
      shape_.num_steps = std::max(shape_.num_steps, steps);
      shape_.lanes.push_back(std::move(info));
    }
    // Lanes of equal shares are divided as one part, so that no block is more than one element off.
    if (equal_shares) shape_.blocks.parts = {{{0, shape_.blocks.num_blocks}, {0, 1}, {1, 1}}};
    shape_.description = describe();
  }

  [[nodiscard]] std::string describe() const {
    const auto name = [&](std::int32_t level) -> std::string {
      const LevelPattern& pattern = patterns_[level];
      const auto word = [](Pattern p) { return p == Pattern::kRing ? "ring" : "mesh"; };
      if (pattern.scatter == Pattern::kPs) return fmt::format("ps:{}", pattern.num_leaders);
      if (pattern.scatter == pattern.gather) return word(pattern.scatter);
      return fmt::format("{}/{}", word(pattern.scatter), word(pattern.gather));
    };
    std::string patterns;
    std::set<std::string> distinct;
    for (std::int32_t l = 0; l < static_cast<std::int32_t>(levels_.size()); ++l) {
      if (levels_[l].radix <= 1) continue;
      distinct.insert(name(l));
      patterns += fmt::format("{}{} on {}", patterns.empty() ? "" : ", ", name(l), levels_[l].name);
    }
    const std::size_t num_levels = lanes_.front().levels.size();
    if (distinct.size() == 1 && num_levels > 1) {
      patterns = fmt::format("{} on {}", *distinct.begin(),
                             num_levels == 2 ? "both levels" : fmt::format("all {} levels", num_levels));
    }
    if (patterns.empty()) patterns = "nothing to exchange";
    return fmt::format("HiPS, {} {}, {}", lanes_.size(), lanes_.size() == 1 ? "lane" : "lanes", patterns);
  }

  [[nodiscard]] bool uses(std::int32_t level, Pattern pattern) const {
    return levels_[level].radix > 1 &&
           (patterns_[level].scatter == pattern || patterns_[level].gather == pattern);
  }

  [[nodiscard]] bool has_rings_of_cables() const {
    return std::ranges::any_of(levels_, [](const Level& level) { return level.kind == LevelKind::kRing; });
  }

  [[nodiscard]] Position position(std::int32_t lane_idx, std::int32_t index, Rank rank) const override {
    const HierarchyLane& lane = lanes_[lane_idx];
    const std::int32_t l = lane.levels[index];
    const Level& level = levels_[l];
    const LevelPattern& pattern = patterns_[l];
    Position position;
    position.level = l;
    position.index = rank / stride_[l] % level.radix;
    position.scatter = pattern.scatter;
    position.gather = pattern.gather;
    // Leaders differ from lane to lane, so that no single server of a group carries all lanes.
    const std::int64_t first =
        pattern.num_leaders == level.radix ? 0 : static_cast<std::int64_t>(lane_idx) * pattern.num_leaders;
    position.leaders = {level.radix, pattern.num_leaders, first % level.radix};
    position.direction = shape_.lanes[lane_idx].direction;
    position.link = [this, l, rank, own = position.index, rail_idx = lane.rail_idx](std::int64_t digit) {
      return link(l, rank, own, digit, rail_idx);
    };
    return position;
  }

  /// How `rank`, whose digit at the level is `own`, and the member with digit `digit` reach each other.
  [[nodiscard]] PeerLink link(std::int32_t level_idx, Rank rank, std::int64_t own, std::int64_t digit,
                              std::int32_t rail_idx) const {
    const Level& level = levels_[level_idx];
    PeerLink link;
    link.peer = static_cast<Rank>(rank + (digit - own) * stride_[level_idx]);
    const auto num_rails = static_cast<std::int32_t>(level.rails.size());
    if (num_rails == 0) return link;
    if (level.kind != LevelKind::kRing || num_rails == 1) {
      link.out = link.in = level.rails[rail_idx % num_rails];
      return link;
    }
    // rails[0] is "+" and rails[1] is "-"; what leaves by one arrives by the other. Take the shorter way
    // round. To the server half way round take the lane's own direction, so that the lanes of both directions
    // share the load.
    const std::int64_t up = pattern::modulo(digit - own, level.radix);
    const std::int64_t down = level.radix - up;
    const bool out_is_plus = up < down || (up == down && rail_idx == 0);
    const bool in_is_plus = down < up || (up == down && rail_idx == 0);  // does the peer send to us by "+"?
    link.out = level.rails[out_is_plus ? 0 : 1];
    link.in = level.rails[in_is_plus ? 1 : 0];
    return link;
  }

  std::vector<Level> levels_;
  std::vector<LevelPattern> patterns_;  ///< by level; num_leaders is the radix, except for PS
  std::vector<std::int64_t> stride_;    ///< by level: weight of its digit in a rank
  std::vector<HierarchyLane> lanes_;
};

bool any_nic_is_down(const Topology& topology) {
  return std::ranges::any_of(topology.overrides,
                             [](const LinkOverride& link) { return link.server >= 0 && !link.up; });
}

/// Seconds per byte of the busiest NIC or tier whose rate differs from that of its level, under a hierarchy
/// that does not take it into account; 0 if there are none.
double slowed_seconds(const Topology& topology, const PlanBuilder& hierarchy) {
  if (topology.overrides.empty()) return 0;
  const std::vector<topology::Tier> tiers = topology::tiers(topology);
  const topology::LinkRates rates(topology, tiers);
  std::vector<double> share(static_cast<std::size_t>(topology.num_rails), 0.0);
  // A server's NICs carry what its ranks send, the same on every server.
  for (Rank rank = 0; rank < topology.ranks_per_server; ++rank) {
    const Program program = hierarchy.program(rank);
    constexpr std::int64_t kMany = std::int64_t{1} << 40;
    for (const Step& step : program.steps) {
      if (step.op != StepOp::kSend || step.rail == kNoRail) continue;
      share[step.rail] += static_cast<double>(hierarchy.shape().blocks.elements(step.dst.blocks, kMany)) /
                          static_cast<double>(kMany);
    }
  }
  double seconds = 0;
  for (const LinkOverride& link : topology.overrides) {
    if (link.server >= 0) seconds = std::max(seconds, share[link.rail] / rates.nic(link.server, link.rail));
  }
  for (std::size_t t = 0; t < tiers.size(); ++t) {
    // A hierarchy that starts at the edge sends over every tier only what the parts above it need.
    const double above = 2 * (1 - 1.0 / static_cast<double>(tiers[t].count));
    for (std::int64_t i = 0; i < tiers[t].count; ++i)
      seconds = std::max(seconds, above / rates.tier(t, static_cast<std::size_t>(i)));
  }
  return seconds;
}

}  // namespace

Result<std::unique_ptr<PrunableBuilder>> make_hierarchy(const Topology& topology, const PlanRequest& request,
                                                        LaneShares shares) {
  return HipsBuilder::make(topology, request, shares);
}

MadeBuilder make_hips(const Topology& topology, const PlanRequest& request) {
  if (Status status = reject_foreign_options("hips", request, {.patterns = true}); !status.ok()) {
    return fail(std::move(status));
  }
  if (topology.num_servers() == 1 && !topology.part.empty()) return make_trees(topology, {});
  const bool no_hierarchy = !topology.part.empty() || topology.family == Family::kGraph ||
                            topology::has_lines(topology) || any_nic_is_down(topology);
  if (no_hierarchy && !request.patterns.empty()) {
    return fail(
        Code::kInvalidArgument,
        "plan: patterns are given for a topology without a hierarchy (servers in part, in lines, in a graph, "
        "or with a link that is down), for which hips uses trees; leave the patterns out");
  }
  if (no_hierarchy) return make_trees(topology, {});
  auto hierarchy = make_hierarchy(topology, request, LaneShares::kBalanced);
  if (!hierarchy || !request.patterns.empty()) return hierarchy;
  if (const double slowed = slowed_seconds(topology, **hierarchy); slowed > 0) {
    const auto packing = topology.num_servers() <= kMostPackedServers
                             ? pack_trees(topology)
                             : Result<TreePacking>(tl::unexpected(Status()));
    if (packing && packing->seconds_per_byte < slowed) return make_trees(topology, {});
  }
  return hierarchy;
}

}  // namespace hips::plan
