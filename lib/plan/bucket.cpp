// "bucket": rings along each dimension of a torus, one dimension after the other, in 2d lanes that start in
// different dimensions and go both ways round. HiPS with rings, but with equal lanes: on equal sides the same
// plan, on others the ports of the longer sides have more to do.

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "lib/plan/algorithms.hpp"
#include "lib/plan/flat.hpp"
#include "lib/plan/hips.hpp"

namespace hips::plan {
namespace {

class BucketBuilder final : public PlanBuilder {
 public:
  explicit BucketBuilder(std::unique_ptr<PlanBuilder> rings)
      : rings_(std::move(rings)), shape_(rings_->shape()) {
    shape_.algorithm = "bucket";
    shape_.description = fmt::format("bucket, {} lanes of rings", shape_.lanes.size());
  }

  [[nodiscard]] const PlanShape& shape() const override { return shape_; }
  [[nodiscard]] Program program(Rank rank) const override { return rings_->program(rank); }

 private:
  std::unique_ptr<PlanBuilder> rings_;
  PlanShape shape_;
};

}  // namespace

/// Builds the multi-port bucket algorithm.
///
/// Shapes   a torus of any sides; 2d lanes of N blocks.
/// Cost     2 * sum of (sides - 1) steps; 2(N-1)/(2dN) of the vector per NIC direction on equal sides.
/// Errors   kUnsupported: no torus.
/// Source   Jain and Sabharwal: Optimal bucket algorithms for large MPI collectives on torus interconnects,
///          ICS 2010, doi:10.1145/1810085.1810093.
MadeBuilder make_bucket(const Topology& topology, const PlanRequest& request) {
  if (Status status = refuse_foreign_options("bucket", request, {}); !status.ok())
    return fail(std::move(status));
  for (const Level& level : topology.levels) {
    if (level.kind == LevelKind::kNode || level.kind == LevelKind::kRing) continue;
    return fail(
        Code::kUnsupported,
        fmt::format("plan: bucket is for a torus, and {} is none; hips with the pattern ring does the "
                    "same on its levels",
                    topology.name));
  }
  auto rings =
      make_hierarchy(topology, {.patterns = {{Pattern::kRing, Pattern::kRing, 0}}}, LaneShares::kEqual);
  if (!rings) return rings;
  return std::make_unique<BucketBuilder>(std::move(*rings));
}

}  // namespace hips::plan
