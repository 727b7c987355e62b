// "swing": recursive halving and doubling on a torus, the dimensions in turn, between partners that are
// close. 2d lanes start in different dimensions and directions, so that all ports are busy.
//
//   side 8, member 0    exchanges with 1, 7, 3; mirrored with 7, 1, 5

#include <bit>

#include <fmt/format.h>

#include "lib/pattern/swing.hpp"
#include "lib/plan/algorithms/algorithms.hpp"
#include "lib/plan/algorithms/options.hpp"
#include "lib/plan/steps/lane_builder.hpp"
#include "lib/plan/steps/shapes.hpp"

namespace hips::plan {
namespace {

/// One step of halving: the one numbered `round` in its dimension.
struct HalvingStep {
  std::int32_t level = 0;
  std::int32_t round = 0;
};

class SwingBuilder final : public LaneBuilder {
 public:
  explicit SwingBuilder(const Topology& topology) : topology_(topology) {
    shape_.algorithm = "swing";
    shape_.description = fmt::format("swing of {} ranks", topology.num_ranks());
    if (topology.num_ranks() == 1) {
      shape_single(shape_);
      return;
    }
    shape_.num_ranks = topology.num_ranks();
    shape_.neighbours_only = true;
    std::vector<std::int32_t> dimensions;
    for (std::int32_t l = 0; l < static_cast<std::int32_t>(topology.levels.size()); ++l) {
      const Level& level = topology.levels[static_cast<std::size_t>(l)];
      if (level.kind != LevelKind::kRing || level.radix == 1) continue;
      dimensions.push_back(l);
      // Partners at distance 3 are reached through servers in between.
      if (level.radix > 4) shape_.neighbours_only = false;
    }
    for (const std::int32_t direction : {+1, -1}) {
      for (std::size_t first = 0; first < dimensions.size(); ++first)
        lanes_.push_back({halvings(dimensions, first), direction});
    }
    // A single server has no dimension to halve.
    if (dimensions.empty()) lanes_.push_back({{}, +1});
    const auto num_lanes = static_cast<std::int64_t>(lanes_.size());
    shape_.blocks.num_blocks = num_lanes * shape_.num_ranks;
    shape_.blocks.parts = {{{0, shape_.blocks.num_blocks}, {0, 1}, {1, 1}}};
    for (std::int64_t p = 0; p < num_lanes; ++p) {
      LaneInfo info{{p * shape_.num_ranks, shape_.num_ranks}, lanes_[p].direction, {}};
      if (topology.ranks_per_server > 1) add_local(info, Phase::kScatter);
      for (const HalvingStep& halving : lanes_[p].halvings)
        info.stages.push_back({Phase::kScatter, halving.level, Pattern::kMesh, 2});
      for (std::size_t i = lanes_[p].halvings.size(); i-- > 0;)
        info.stages.push_back({Phase::kGather, lanes_[p].halvings[i].level, Pattern::kMesh, 2});
      if (topology.ranks_per_server > 1) add_local(info, Phase::kGather);
      shape_.num_steps = static_cast<std::int32_t>(info.stages.size());
      shape_.lanes.push_back(std::move(info));
    }
  }

 private:
  struct SwingLane {
    std::vector<HalvingStep> halvings;
    std::int32_t direction = 1;
  };

  /// The dimensions in turn, starting with number `first`; dimensions whose side is fully halved are skipped.
  [[nodiscard]] std::vector<HalvingStep> halvings(const std::vector<std::int32_t>& dimensions,
                                                  std::size_t first) const {
    std::vector<HalvingStep> all;
    for (std::int32_t round = 0;; ++round) {
      const std::size_t before = all.size();
      for (std::size_t i = 0; i < dimensions.size(); ++i) {
        const std::int32_t level = dimensions[(first + i) % dimensions.size()];
        if (std::int64_t{2} << round <= topology_.levels[static_cast<std::size_t>(level)].radix)
          all.push_back({level, round});
      }
      if (all.size() == before) return all;
    }
  }

  void add_local(LaneInfo& info, Phase phase) const {
    info.stages.push_back({phase, 0, Pattern::kMesh, topology_.ranks_per_server});
  }

  [[nodiscard]] Position position(std::int32_t lane_idx, std::int32_t index, Rank rank) const override {
    Position position;
    if (const std::int64_t local = topology_.ranks_per_server; local > 1) {
      if (index == 0) {
        position.level = 0;
        position.index = rank % local;
        position.leaders = {.size = local, .num_leaders = local, .first = 0};
        position.link = [rank, local](std::int64_t member) {
          return PeerLink{static_cast<Rank>(rank - rank % local + member), kNoRail, kNoRail};
        };
        return position;
      }
      --index;
    }
    const SwingLane& lane = lanes_[lane_idx];
    const HalvingStep halving = lane.halvings[index];
    const Level& level = topology_.levels[static_cast<std::size_t>(halving.level)];
    const pattern::Swing swing{level.radix, lane.direction};
    const std::int64_t member = topology_.digit(rank, halving.level);
    position.level = halving.level;
    position.index = pattern::swing_half(swing, member, halving.round);
    position.leaders = {.size = 2, .num_leaders = 2, .first = 0};
    position.link = [this, rank, member, swing, halving, &level](std::int64_t) {
      // Never more than half way round, so the sign says which port is on the shorter way.
      const bool plus = pattern::swing_offset(swing, member, halving.round) > 0;
      PeerLink link;
      link.peer =
          topology_.with_digit(rank, halving.level, pattern::swing_peer(swing, member, halving.round));
      link.out = link.in = level.rails[plus ? 0 : 1];
      return link;
    };
    return position;
  }

  Topology topology_;
  std::vector<SwingLane> lanes_;
};

}  // namespace

/// Builds Swing on a torus.
///
/// Shapes   sides are powers of two; 2d lanes of N blocks.
/// Cost     2 log2 N steps; a message of stage s takes up to (2^(s/d + 1) + 1)/3 hops, and its bytes load them all.
/// Errors   kUnsupported: the topology is not a torus, or a side is not a power of two.
/// Source   De Sensi, Bonato, Saam, Hoefler: Swing: Short-cutting Rings for Higher Bandwidth Allreduce, NSDI 2024.
MadeBuilder make_swing(const Topology& topology, const PlanRequest& request) {
  if (Status status = reject_foreign_options("swing", request, {}); !status.ok())
    return fail(std::move(status));
  for (const Level& level : topology.levels) {
    if (level.kind == LevelKind::kNode) continue;
    if (level.kind != LevelKind::kRing) {
      return fail(
          Code::kUnsupported,
          fmt::format("plan: swing needs a torus, and {} is not one; bine does the same on any topology",
                      topology.name));
    }
    if (!std::has_single_bit(static_cast<std::uint64_t>(level.radix))) {
      return fail(
          Code::kUnsupported,
          fmt::format(
              "plan: swing needs sides that are powers of two, and {} of {} is {}; bucket takes any side",
              level.name, topology.name, level.radix));
    }
  }
  return std::make_unique<SwingBuilder>(topology);
}

}  // namespace hips::plan
