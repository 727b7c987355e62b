// "bucket": rings along each dimension of a torus, one dimension after the other. 2d lanes start in different
// dimensions and go in both directions. It is HiPS with rings and equal lanes: the same plan on equal sides;
// on unequal sides the ports of the longer ones carry more.

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "lib/plan/algorithms/algorithms.hpp"
#include "lib/plan/algorithms/hips.hpp"
#include "lib/plan/algorithms/options.hpp"

namespace hips::plan {
namespace {

class BucketBuilder final : public PrunableBuilder {
 public:
  explicit BucketBuilder(std::unique_ptr<PrunableBuilder> rings)
      : rings_(std::move(rings)), shape_(rings_->shape()) {
    shape_.algorithm = "bucket";
    shape_.description = fmt::format("bucket, {} lanes of rings", shape_.lanes.size());
  }

  [[nodiscard]] const PlanShape& shape() const override { return shape_; }
  [[nodiscard]] Program program(Rank rank) const override { return rings_->program(rank); }
  [[nodiscard]] std::vector<BlockRange> owned(Rank rank) const override { return rings_->owned(rank); }
  [[nodiscard]] bool kept_in_bcast(const MessageName& message, Rank root) const override {
    return rings_->kept_in_bcast(message, root);
  }
  [[nodiscard]] bool kept_in_reduce(const MessageName& message, Rank root) const override {
    return rings_->kept_in_reduce(message, root);
  }

 private:
  std::unique_ptr<PrunableBuilder> rings_;
  PlanShape shape_;
};

}  // namespace

/// Builds the multi-port bucket algorithm.
///
/// Shapes   a torus of any sides; 2d lanes of N blocks.
/// Cost     2 * sum of (sides - 1) steps; 2(N-1)/(2dN) of the vector per NIC direction on equal sides.
/// Errors   kUnsupported: the topology is not a torus.
/// Source   Jain and Sabharwal: Optimal bucket algorithms for large MPI collectives on torus interconnects,
///          ICS 2010, doi:10.1145/1810085.1810093.
MadeBuilder make_bucket(const Topology& topology, const PlanRequest& request) {
  if (Status status = reject_foreign_options("bucket", request, {}); !status.ok())
    return fail(std::move(status));
  for (const Level& level : topology.levels) {
    if (level.kind == LevelKind::kNode || level.kind == LevelKind::kRing) continue;
    return fail(
        Code::kUnsupported,
        fmt::format("plan: bucket needs a torus, and {} is not one; hips with the pattern ring does the same "
                    "on its levels",
                    topology.name));
  }
  auto rings =
      make_hierarchy(topology, {.patterns = {{Pattern::kRing, Pattern::kRing, 0}}}, LaneShares::kEqual);
  if (!rings) return fail(std::move(rings).error());
  return std::make_unique<BucketBuilder>(std::move(*rings));
}

}  // namespace hips::plan
