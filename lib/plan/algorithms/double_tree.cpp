// "double-tree": two binary trees over all ranks; half of the vector goes up and down each. Inner ranks of
// one tree are leaves of the other, so that all ranks send about the same. Few steps for any number of ranks,
// but up to two vectors of bytes per NIC direction.
//
//   7 ranks    0 - 4 - 2 - 1, 3        1 - 5 - 3 - 2, 4
//                    - 6 - 5                 - 0 - 6

#include <algorithm>

#include <fmt/format.h>

#include "lib/pattern/tree.hpp"
#include "lib/plan/algorithms/algorithms.hpp"
#include "lib/plan/algorithms/options.hpp"
#include "lib/plan/steps/shapes.hpp"
#include "lib/plan/steps/tree_builder.hpp"

namespace hips::plan {
namespace {

class DoubleTreeBuilder final : public TreeBuilder {
 public:
  explicit DoubleTreeBuilder(const Topology& topology) : topology_(topology), tree_{topology.num_ranks()} {
    shape_.algorithm = "double-tree";
    shape_.description = fmt::format("two binary trees of {} ranks", tree_.size);
    if (tree_.size == 1) {
      shape_single(shape_);
      return;
    }
    shape_.num_ranks = topology.num_ranks();
    shape_.neighbours_only = all_are_neighbours(topology);
    shape_.num_steps = tree_steps(pattern::depth_of(tree_), 1);
    shape_.blocks.num_blocks = 2;
    shape_.blocks.parts = {{{0, 2}, {0, 1}, {1, 1}}};
    for (const BlockIdx lane : {0, 1}) shape_.lanes.push_back({{lane, 1}, +1, tree_stages(1)});
  }

 private:
  [[nodiscard]] std::int64_t num_local() const override { return 1; }

  [[nodiscard]] std::int64_t node_of(std::int32_t lane, Rank rank) const {
    return lane == 1 ? pattern::place_in_second(tree_, rank) : rank;
  }
  [[nodiscard]] Rank rank_of(std::int32_t lane, std::int64_t node) const {
    return static_cast<Rank>(lane == 1 ? pattern::rank_in_second(tree_, node) : node);
  }

  [[nodiscard]] Rank parent(std::int32_t lane, Rank rank) const override {
    const std::int64_t up = pattern::parent_of(tree_, node_of(lane, rank));
    return up < 0 ? -1 : rank_of(lane, up);
  }

  [[nodiscard]] TreePlace place(std::int32_t lane, Rank rank) const override {
    TreePlace place;
    place.lane = lane;
    place.blocks = shape_.lanes[lane].blocks;
    if (const Rank up = parent(lane, rank); up >= 0) place.parent = routed_link(topology_, rank, up, lane);
    for (const bool far : {false, true}) {
      const std::int64_t down = pattern::child_of(tree_, node_of(lane, rank), far);
      if (down >= 0) place.children.push_back(routed_link(topology_, rank, rank_of(lane, down), lane));
    }
    std::ranges::sort(place.children, {}, &PeerLink::peer);
    return place;
  }

  Topology topology_;
  pattern::BinaryTree tree_;
};

}  // namespace

/// Builds the double binary tree.
///
/// Shapes   any number of ranks; two blocks.
/// Cost     2 (1 + log2 N) steps at most; one and a half vectors per NIC direction of an inner rank, and half
///          a vector as a leaf of the other tree: at most 2 in all.
/// Source   Sanders, Speck, Träff 2009, doi:10.1016/j.parco.2009.09.001; the numbering as in NCCL.
MadeBuilder make_double_tree(const Topology& topology, const PlanRequest& request) {
  if (Status status = reject_foreign_options("double-tree", request, {}); !status.ok())
    return fail(std::move(status));
  return std::make_unique<DoubleTreeBuilder>(topology);
}

}  // namespace hips::plan
