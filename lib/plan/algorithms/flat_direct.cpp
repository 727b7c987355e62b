// "flat-mesh" and "flat-ps": all ranks are one group. Each rank, or each of the first P, owns a piece of the
// vector, reduces it from all others and sends the result to them.

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "lib/plan/algorithms/algorithms.hpp"
#include "lib/plan/algorithms/options.hpp"
#include "lib/plan/steps/lane_builder.hpp"
#include "lib/plan/steps/shapes.hpp"

namespace hips::plan {
namespace {

class FlatDirectBuilder final : public LaneBuilder {
 public:
  FlatDirectBuilder(const Topology& topology, Pattern pattern, std::int32_t num_leaders)
      : topology_(topology), pattern_(pattern), num_leaders_(num_leaders) {
    const Rank ranks = topology.num_ranks();
    shape_.algorithm = pattern == Pattern::kPs ? "flat-ps" : "flat-mesh";
    shape_.description = pattern == Pattern::kPs
                             ? fmt::format("flat PS, {} of {} ranks lead", num_leaders, ranks)
                             : fmt::format("flat mesh of {} ranks", ranks);
    if (ranks == 1) {
      shape_single(shape_);
      return;
    }
    shape_.num_ranks = ranks;
    shape_.num_steps = 2;
    shape_.neighbours_only = all_are_neighbours(topology);
    shape_one_lane(shape_, num_leaders,
                   {{Phase::kScatter, -1, pattern, num_leaders}, {Phase::kGather, -1, pattern, num_leaders}});
  }

 private:
  [[nodiscard]] Position position(std::int32_t /*lane*/, std::int32_t /*index*/, Rank rank) const override {
    Position position;
    position.index = rank;
    position.scatter = position.gather = pattern_;
    position.leaders = {.size = shape_.num_ranks, .num_leaders = num_leaders_, .first = 0};
    position.link = [this, rank](std::int64_t peer) {
      return routed_link(topology_, rank, static_cast<Rank>(peer), turn(rank, peer));
    };
    return position;
  }

  /// In a mesh: each distance in the circle of servers has two peers, so the NICs get about as many each.
  [[nodiscard]] std::int64_t turn(std::int64_t rank, std::int64_t peer) const {
    if (pattern_ != Pattern::kMesh) return 0;
    const std::int64_t servers = topology_.num_servers(), local = topology_.ranks_per_server;
    const std::int64_t up = (peer / local - rank / local + servers) % servers;
    return std::min(up, servers - up);
  }

  Topology topology_;
  Pattern pattern_;
  std::int32_t num_leaders_;
};

}  // namespace

MadeBuilder make_flat_mesh(const Topology& topology, const PlanRequest& request) {
  if (Status status = reject_foreign_options("flat-mesh", request, {}); !status.ok()) {
    return fail(std::move(status));
  }
  return std::make_unique<FlatDirectBuilder>(topology, Pattern::kMesh, topology.num_ranks());
}

MadeBuilder make_flat_ps(const Topology& topology, const PlanRequest& request) {
  if (Status status = reject_foreign_options("flat-ps", request, {.leaders = true}); !status.ok()) {
    return fail(std::move(status));
  }
  const Rank ranks = topology.num_ranks();
  const std::int32_t leaders = request.num_leaders == 0 ? 1 : request.num_leaders;
  if (leaders < 1 || leaders > ranks) {
    return fail(Code::kInvalidArgument,
                fmt::format("flat-ps: invalid number of leaders {} (valid: 1 to {}, the number of ranks)",
                            leaders, ranks));
  }
  return std::make_unique<FlatDirectBuilder>(topology, Pattern::kPs, leaders);
}

}  // namespace hips::plan
