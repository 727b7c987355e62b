// "trees": spanning trees of neighbours side by side, each carrying its share of the vector to its root and
// back. For what is no hierarchy: some servers of a BCube, a Torus or a tree of switches, links that are slow
// or down. Another way to find trees is another pack_trees(): whatever weighted trees of hops it gives run
// here.
//
//   six servers of BCube(3,1) in use, two of the trees    <00>-<01>-<02>      <00> <01> <02>
//                                                          |         |         |    |    |
//                                                         <10>-<11> <22>      <10>-<11> <22>...

#include <algorithm>

#include <fmt/format.h>

#include "lib/plan/algorithms.hpp"
#include "lib/plan/flat.hpp"
#include "lib/plan/tree_packing.hpp"
#include "lib/plan/tree_program.hpp"

namespace hips::plan {
namespace {

// Shares of the linear program are doubles; a millionth of the vector more or less costs nothing.
constexpr std::int64_t kShareSteps = 1 << 20;

bool equal_shares(const TreePacking& packing) {
  return std::ranges::all_of(
      packing.trees, [&](const WeightedTree& tree) { return tree.share == packing.trees.front().share; });
}

class TreesBuilder final : public PlanBuilder {
 public:
  TreesBuilder(const Topology& topology, const TreePacking& packing) : local_(topology.ranks_per_server) {
    shape_.algorithm = "trees";
    shape_.num_ranks = topology.num_ranks();
    shape_.neighbours_only = true;
    const auto num_trees = static_cast<std::int64_t>(packing.trees.size());
    double share = 0;
    Fraction begin{0, 1};
    for (std::int64_t t = 0; t < num_trees; ++t) {
      const WeightedTree& tree = packing.trees[t];
      const BlockRange blocks{t * local_, local_};
      share += tree.share;
      Fraction end{1, 1};
      if (equal_shares(packing) && t + 1 < num_trees)
        end = {t + 1, num_trees};
      else if (t + 1 < num_trees)
        end = {std::clamp(static_cast<std::int64_t>(share * kShareSteps + 0.5), std::int64_t{0}, kShareSteps),
               kShareSteps};
      shape_.blocks.parts.push_back({blocks, begin, end});
      begin = end;
      shape_.lanes.push_back({blocks, +1, tree_stages(local_)});
      shape_.num_steps = std::max(shape_.num_steps, tree_steps(tree.depth, local_));
      add_places(tree, topology.num_servers());
    }
    shape_.blocks.num_blocks = num_trees * local_;
    shape_.description = fmt::format("{} weighted {} of {} servers", num_trees,
                                     num_trees == 1 ? "tree" : "trees", topology.num_servers());
  }

  [[nodiscard]] const PlanShape& shape() const override { return shape_; }

  [[nodiscard]] Program program(Rank rank) const override {
    const std::int64_t server = rank / local_, local = rank % local_;
    std::vector<TreePlace> places;
    for (std::size_t t = 0; t < trees_.size(); ++t) {
      const Place& place = trees_[t][static_cast<std::size_t>(server)];
      TreePlace made{.lane = static_cast<std::int32_t>(t),
                     .blocks = shape_.lanes[t].blocks,
                     .local = local,
                     .num_local = local_,
                     .parent = {},
                     .children = {}};
      const auto link = [&](const Neighbour& other) {
        return Link{static_cast<Rank>(other.server * local_ + local), other.own_rail, other.own_rail};
      };
      if (place.parent.server >= 0) made.parent = link(place.parent);
      for (const Neighbour& child : place.children) made.children.push_back(link(child));
      places.push_back(std::move(made));
    }
    ProgramWriter writer(rank);
    emit_trees(rank, places, writer);
    return writer.take();
  }

 private:
  /// A cable is full duplex: what goes to a neighbour by a NIC comes back by it.
  struct Neighbour {
    std::int64_t server = -1;
    Rail own_rail = kNoRail;
  };
  struct Place {
    Neighbour parent;
    std::vector<Neighbour> children;
  };

  void add_places(const WeightedTree& tree, std::int64_t servers) {
    std::vector<std::vector<Neighbour>> near(static_cast<std::size_t>(servers));
    for (const TreeEdge& edge : tree.edges) {
      near[edge.a].push_back({edge.b, edge.a_rail});
      near[edge.b].push_back({edge.a, edge.b_rail});
    }
    std::vector<Place> places(near.size());
    std::vector<std::int64_t> order{tree.root};
    for (std::size_t i = 0; i < order.size(); ++i) {
      Place& place = places[order[i]];
      for (const Neighbour& other : near[order[i]]) {
        if (other.server == place.parent.server) continue;
        place.children.push_back(other);
        order.push_back(other.server);
        for (const Neighbour& back : near[other.server])
          if (back.server == order[i]) places[other.server].parent = back;
      }
      std::ranges::sort(place.children, {}, &Neighbour::server);
    }
    trees_.push_back(std::move(places));
  }

  std::int64_t local_;
  std::vector<std::vector<Place>> trees_;  ///< by tree and server
  PlanShape shape_;
};

}  // namespace

MadeBuilder make_trees(const Topology& topology, const PlanRequest& request) {
  if (Status status = refuse_foreign_options("trees", request, {}); !status.ok())
    return fail(std::move(status));
  // One server has nobody to reach: HiPS folds what its ranks have.
  if (topology.num_servers() == 1) {
    Topology alone = topology;
    alone.part.clear();
    std::erase_if(alone.levels, [](const Level& level) { return level.kind != LevelKind::kNode; });
    return make_hips(alone, {});
  }
  const auto packing = pack_trees(topology);
  if (!packing) return fail(packing.error());
  return std::make_unique<TreesBuilder>(topology, *packing);
}

}  // namespace hips::plan
