// "double-tree": two binary trees over all ranks, half of the vector up and down each. Inner ranks of one are
// leaves of the other, so that all send about as much; few steps, and bytes of a whole vector, whatever the
// number of ranks.
//
//   7 ranks    0 - 4 - 2 - 1, 3        1 - 5 - 3 - 2, 4
//                    - 6 - 5                 - 0 - 6

#include <algorithm>

#include <fmt/format.h>

#include "lib/pattern/tree.hpp"
#include "lib/plan/flat.hpp"
#include "lib/plan/tree_program.hpp"

namespace hips::plan {
namespace {

class DoubleTreeBuilder final : public PlanBuilder {
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

  [[nodiscard]] const PlanShape& shape() const override { return shape_; }

  [[nodiscard]] Program program(Rank rank) const override {
    if (shape_.num_ranks == 1) return program_single();
    ProgramWriter writer(rank);
    emit_trees(rank, {place(rank, false), place(rank, true)}, writer);
    return writer.take();
  }

 private:
  [[nodiscard]] TreePlace place(Rank rank, bool second) const {
    const std::int64_t node = second ? pattern::place_in_second(tree_, rank) : rank;
    const auto link = [&](std::int64_t other) {
      return routed_link(topology_, rank,
                         static_cast<Rank>(second ? pattern::rank_in_second(tree_, other) : other));
    };
    TreePlace place;
    place.lane = second ? 1 : 0;
    place.blocks = shape_.lanes[second ? 1 : 0].blocks;
    if (const std::int64_t up = pattern::parent_of(tree_, node); up >= 0) place.parent = link(up);
    for (const bool far : {false, true}) {
      if (const std::int64_t down = pattern::child_of(tree_, node, far); down >= 0)
        place.children.push_back(link(down));
    }
    std::ranges::sort(place.children, {}, &Link::peer);
    return place;
  }

  Topology topology_;
  pattern::BinaryTree tree_;
  PlanShape shape_;
};

}  // namespace

/// Builds the double binary tree.
///
/// Shapes   any number of ranks; two blocks.
/// Cost     2 (1 + log2 N) steps at most; a vector and a half per NIC direction of an inner rank, beside half
/// a
///          vector as the other tree's leaf: at most 2 in all.
/// Source   Sanders, Speck, Träff 2009, doi:10.1016/j.parco.2009.09.001; the numbering as in NCCL.
MadeBuilder make_double_tree(const Topology& topology, const PlanRequest& request) {
  if (Status status = refuse_foreign_options("double-tree", request, {}); !status.ok())
    return fail(std::move(status));
  return std::make_unique<DoubleTreeBuilder>(topology);
}

}  // namespace hips::plan
