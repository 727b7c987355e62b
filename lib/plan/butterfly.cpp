#include "lib/plan/butterfly.hpp"

#include <utility>

#include "lib/pattern/halving.hpp"
#include "lib/plan/flat.hpp"

namespace hips::plan {
namespace {

class ButterflyBuilder final : public PlanBuilder {
 public:
  ButterflyBuilder(const Topology& topology, std::string algorithm, std::string description,
                   ExchangeOf exchange)
      : topology_(topology), halving_{topology.num_ranks()}, exchange_(std::move(exchange)) {
    shape_.algorithm = std::move(algorithm);
    shape_.description = std::move(description);
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
        const Exchange exchange = exchange_(pattern::core_index(halving_, rank), round);
        position.index = exchange.half;
        position.link = [this, rank, peer = exchange.peer](std::int64_t) {
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
  ExchangeOf exchange_;
  PlanShape shape_;
};

}  // namespace

std::unique_ptr<PlanBuilder> make_butterfly(const Topology& topology, std::string algorithm,
                                            std::string description, ExchangeOf exchange) {
  return std::make_unique<ButterflyBuilder>(topology, std::move(algorithm), std::move(description),
                                            std::move(exchange));
}

}  // namespace hips::plan
