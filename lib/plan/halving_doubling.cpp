// "halving-doubling": recursive halving reduce-scatter, then recursive doubling all-gather, for any number of
// ranks. It is a hierarchy of radix 2: core member v has the bits of v as digits, bit 0 first. In front
// stands a level at which each pair beyond the power of two folds into one, the odd one leading.
//
//   6 ranks    fold 0->1 2->3 | bit 0 | bit 1 || bit 1 | bit 0 | serve 1->0 3->2

#include <fmt/format.h>

#include "lib/pattern/halving.hpp"
#include "lib/plan/flat.hpp"

namespace hips::plan {
namespace {

class HalvingDoublingBuilder final : public PlanBuilder {
 public:
  explicit HalvingDoublingBuilder(const Topology& topology)
      : topology_(topology), halving_{topology.num_ranks()} {
    shape_.algorithm = "halving-doubling";
    shape_.description = fmt::format("halving-doubling of {} ranks", halving_.size);
    if (halving_.size == 1) {
      shape_single(shape_);
      return;
    }
    shape_.num_ranks = topology.num_ranks();
    shape_.neighbours_only = all_are_neighbours(topology);
    std::vector<StageInfo> stages;
    const auto add = [&](Phase phase) {
      if (phase == Phase::kScatter && halving_.rest() > 0) stages.push_back({phase, -1, Pattern::kPs, 1});
      for (std::int32_t round = 0; round < halving_.num_rounds(); ++round) {
        stages.push_back({phase, -1, Pattern::kMesh, 2});
      }
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
        const std::int64_t v = pattern::core_index(halving_, rank);
        position.index = v >> round & 1;
        position.link = [this, rank, peer = pattern::exchange_peer(v, round)](std::int64_t) {
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
  PlanShape shape_;
};

}  // namespace

MadeBuilder make_halving_doubling(const Topology& topology, const PlanRequest& request) {
  if (Status status = refuse_foreign_options("halving-doubling", request, {}); !status.ok()) {
    return fail(std::move(status));
  }
  return std::make_unique<HalvingDoublingBuilder>(topology);
}

}  // namespace hips::plan
