// "bine": recursive halving and doubling between ranks at distances 1, 1, 3, 5, 11, ... to alternating sides,
// for any number of ranks. Partners are nearer to each other than powers of two would have them, which keeps
// bytes below switches that nobody has told us of.
//
//   8 ranks, rank 0    exchanges with 1, 7, 3 (powers of two: 1, 2, 4)

#include <fmt/format.h>

#include "lib/pattern/halving.hpp"
#include "lib/pattern/swing.hpp"
#include "lib/plan/flat.hpp"

namespace hips::plan {
namespace {

class BineBuilder final : public PlanBuilder {
 public:
  explicit BineBuilder(const Topology& topology)
      : topology_(topology), halving_{topology.num_ranks()}, swing_{halving_.core(), +1} {
    shape_.algorithm = "bine";
    shape_.description = fmt::format("binomial negabinary halving and doubling of {} ranks", halving_.size);
    if (halving_.size == 1) {
      shape_single(shape_);
      return;
    }
    shape_.num_ranks = topology.num_ranks();
    shape_.neighbours_only = all_are_neighbours(topology);
    std::vector<StageInfo> stages;
    const auto add = [&](Phase phase) {
      if (phase == Phase::kScatter && halving_.rest() > 0) stages.push_back({phase, -1, Pattern::kPs, 1});
      for (std::int32_t round = 0; round < halving_.num_rounds(); ++round)
        stages.push_back({phase, -1, Pattern::kMesh, 2});
      if (phase == Phase::kGather && halving_.rest() > 0) stages.push_back({phase, -1, Pattern::kPs, 1});
    };
    add(Phase::kScatter);
    add(Phase::kGather);
    shape_.num_steps = static_cast<std::int32_t>(stages.size());
    shape_one_lane(shape_, halving_.core(), std::move(stages));
  }

  [[nodiscard]] const PlanShape& shape() const override { return shape_; }

  [[nodiscard]] Program program(Rank rank) const override {
    if (shape_.num_ranks == 1) return program_single();
    std::vector<Position> positions;
    if (halving_.rest() > 0) positions.push_back(fold(rank));
    const bool in_core = !pattern::is_folded_out(halving_, rank);
    for (std::int32_t round = 0; round < halving_.num_rounds(); ++round) {
      Position position;
      position.leaders = {.size = 2, .num_leaders = 2, .first = 0};
      if (in_core) {
        const std::int64_t member = pattern::core_index(halving_, rank);
        position.index = pattern::swing_half(swing_, member, round);
        position.link = [this, rank, peer = pattern::swing_peer(swing_, member, round)](std::int64_t) {
          return routed_link(topology_, rank, static_cast<Rank>(pattern::core_member(halving_, peer)));
        };
      }
      positions.push_back(std::move(position));
    }
    ProgramWriter writer(rank);
    LaneProgram lane(0, 0, positions, writer);
    for (std::int32_t stage = 0; stage < lane.num_stages(); ++stage) lane.emit_stage(stage);
    writer.own(lane.owned());
    return writer.take();
  }

 private:
  /// Pairs beyond the power of two fold into one, the odd one leading.
  [[nodiscard]] Position fold(Rank rank) const {
    Position position;
    position.scatter = position.gather = Pattern::kPs;
    if (!pattern::in_pair(halving_, rank)) {
      position.leaders = {.size = 1, .num_leaders = 1, .first = 0};
      return position;
    }
    position.index = rank % 2;
    position.leaders = {.size = 2, .num_leaders = 1, .first = 1};
    position.link = [this, rank](std::int64_t) {
      return routed_link(topology_, rank, static_cast<Rank>(pattern::pair_of(halving_, rank)));
    };
    return position;
  }

  Topology topology_;
  pattern::Halving halving_;
  pattern::Swing swing_;
  PlanShape shape_;
};

}  // namespace

/// Builds the Bine butterfly: reduce-scatter by halving, nearest partners first, and all-gather back.
///
/// Shapes   any number of ranks; a block for each of the largest power of two among them.
/// Cost     2 log2 N steps, 2 more where N is no power of two; 2(N-1)/N of the vector per NIC direction.
/// Source   De Sensi, Pasqualoni, Piarulli, Bonato, Ba, Turisini, Domke, Hoefler: Bine Trees, SC 2025.
MadeBuilder make_bine(const Topology& topology, const PlanRequest& request) {
  if (Status status = refuse_foreign_options("bine", request, {}); !status.ok())
    return fail(std::move(status));
  return std::make_unique<BineBuilder>(topology);
}

}  // namespace hips::plan
