// "binomial-tree": the whole vector goes up one tree and down again, which takes the fewest messages of all: for tiny
// vectors where a message costs more than waiting for one, as where ranks share cores.
//
//   8 ranks    0 - 1        the parent of a rank is its number without the lowest bit
//                - 2 - 3
//                - 4 - 5
//                    - 6 - 7

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "lib/plan/algorithms/algorithms.hpp"
#include "lib/plan/algorithms/options.hpp"
#include "lib/plan/steps/shapes.hpp"
#include "lib/plan/steps/tree_builder.hpp"

namespace hips::plan {
namespace {

/// Hops from rank 0 to the lowest one.
std::int64_t depth_of(std::int64_t size) {
  const auto last = static_cast<std::uint64_t>(size - 1);
  return std::max<std::int64_t>(std::popcount(last), std::bit_width(last) - 1);
}

class BinomialTreeBuilder final : public TreeBuilder {
 public:
  explicit BinomialTreeBuilder(const Topology& topology) : topology_(topology) {
    shape_.algorithm = "binomial-tree";
    shape_.description = fmt::format("a binomial tree of {} ranks", topology.num_ranks());
    if (topology.num_ranks() == 1) {
      shape_single(shape_);
      return;
    }
    shape_.num_ranks = topology.num_ranks();
    shape_.neighbours_only = all_are_neighbours(topology);
    shape_.num_steps = tree_steps(depth_of(topology.num_ranks()), 1);
    shape_one_lane(shape_, 1, tree_stages(1));
  }

 private:
  [[nodiscard]] std::int64_t num_local() const override { return 1; }

  [[nodiscard]] Rank parent(std::int32_t /*lane*/, Rank rank) const override {
    return rank == 0 ? -1 : rank & (rank - 1);
  }

  [[nodiscard]] TreePlace place(std::int32_t lane, Rank rank) const override {
    TreePlace place;
    place.lane = lane;
    place.blocks = {0, 1};
    if (rank > 0) place.parent = link(rank, parent(lane, rank), rank);
    for (std::int64_t bit = 1; rank + bit < shape_.num_ranks && (rank & bit) == 0; bit *= 2) {
      const auto child = static_cast<Rank>(rank + bit);
      place.children.push_back(link(rank, child, child));
    }
    return place;
  }

  /// The children of a rank take turns with its NICs.
  [[nodiscard]] PeerLink link(Rank rank, Rank peer, Rank child) const {
    return routed_link(topology_, rank, peer, std::countr_zero(static_cast<std::uint32_t>(child)));
  }

  Topology topology_;
};

}  // namespace

/// Builds the binomial tree.
///
/// Shapes   any number of ranks; one block.
/// Cost     2 log2 N steps; 2(N-1) messages in all; log2 N vectors per NIC direction of rank 0.
/// Source   Thakur, Rabenseifner, Gropp 2005, doi:10.1177/1094342005051521.
MadeBuilder make_binomial_tree(const Topology& topology, const PlanRequest& request) {
  if (Status status = reject_foreign_options("binomial-tree", request, {}); !status.ok())
    return fail(std::move(status));
  return std::make_unique<BinomialTreeBuilder>(topology);
}

}  // namespace hips::plan
