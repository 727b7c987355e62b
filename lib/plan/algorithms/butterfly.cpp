#include "lib/plan/algorithms/butterfly.hpp"

#include <utility>
#include <vector>

#include "lib/pattern/halving.hpp"
#include "lib/plan/steps/lane_builder.hpp"
#include "lib/plan/steps/shapes.hpp"

namespace hips::plan {
namespace {

class ButterflyBuilder final : public LaneBuilder {
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
      if (phase == Phase::kScatter && has_pairs()) stages.push_back({phase, -1, Pattern::kPs, 1});
      for (std::int32_t round = 0; round < halving_.num_rounds(); ++round) {
        stages.push_back({phase, -1, Pattern::kMesh, 2});
      }
      if (phase == Phase::kGather && has_pairs()) stages.push_back({phase, -1, Pattern::kPs, 1});
    };
    add(Phase::kScatter);
    add(Phase::kGather);
    shape_.num_steps = static_cast<std::int32_t>(stages.size());
    shape_one_lane(shape_, halving_.core(), std::move(stages));
  }

 private:
  [[nodiscard]] bool has_pairs() const { return halving_.rest() > 0; }

  [[nodiscard]] Position position(std::int32_t /*lane*/, std::int32_t index, Rank rank) const override {
    if (has_pairs() && index == 0) return pair_position(rank);
    Position position;
    position.leaders = {.size = 2, .num_leaders = 2, .first = 0};
    if (pattern::is_outside_core(halving_, rank)) return position;
    const ButterflyExchange exchange =
        exchange_(pattern::core_index(halving_, rank), index - (has_pairs() ? 1 : 0));
    position.index = exchange.half;
    position.link = [this, rank, index, peer = exchange.peer](std::int64_t) {
      return routed_link(topology_, rank, static_cast<Rank>(pattern::core_member(halving_, peer)), index);
    };
    return position;
  }

  /// In pairs beyond the power of two, the rank with the odd number leads.
  [[nodiscard]] Position pair_position(Rank rank) const {
    Position position;
    position.scatter = position.gather = Pattern::kPs;
    if (!pattern::in_pair(halving_, rank)) {
      position.leaders = {.size = 1, .num_leaders = 1, .first = 0};
      return position;
    }
    position.index = rank % 2;
    position.leaders = {.size = 2, .num_leaders = 1, .first = 1};
    position.link = [this, rank](std::int64_t) {
      return routed_link(topology_, rank, static_cast<Rank>(pattern::pair_of(halving_, rank)), 0);
    };
    return position;
  }

  Topology topology_;
  pattern::Halving halving_;
  ExchangeOf exchange_;
};

}  // namespace

std::unique_ptr<PlanBuilder> make_butterfly(const Topology& topology, std::string algorithm,
                                            std::string description, ExchangeOf exchange) {
  return std::make_unique<ButterflyBuilder>(topology, std::move(algorithm), std::move(description),
                                            std::move(exchange));
}

}  // namespace hips::plan
