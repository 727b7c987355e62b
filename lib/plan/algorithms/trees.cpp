// "trees": spanning trees of neighbours side by side; each sends its share of the vector up to its root and
// back. For topologies that are no hierarchy: some servers of a BCube, a Torus or a tree of switches, links
// that are slow or down. The trees come from pack_trees(); any other function that finds weighted trees of
// hops could take its place.
//
//   six servers of BCube(3,1) in use, two of the trees    <00>-<01>-<02>      <00> <01> <02>
//                                                          |         |         |    |    |
//                                                         <10>-<11> <22>      <10>-<11> <22>...

#include <algorithm>

#include <fmt/format.h>

#include "lib/plan/algorithms/algorithms.hpp"
#include "lib/plan/algorithms/options.hpp"
#include "lib/plan/fabric/tree_packing.hpp"
#include "lib/plan/steps/tree_builder.hpp"

namespace hips::plan {
namespace {

// The linear program's shares are doubles; a millionth of the vector makes no difference.
constexpr std::int64_t kShareSteps = 1 << 20;

bool equal_shares(const TreePacking& packing) {
  return std::ranges::all_of(
      packing.trees, [&](const WeightedTree& tree) { return tree.share == packing.trees.front().share; });
}

class TreesBuilder final : public TreeBuilder {
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
    shape_.description =
        fmt::format("{} weighted {} of {} servers{}", num_trees, num_trees == 1 ? "tree" : "trees",
                    topology.num_servers(), packing.stopped_early ? ", search stopped at its limit" : "");
  }

 private:
  /// A cable is full duplex: a server sends to a neighbour and receives from it by the same NIC.
  struct TreeNeighbour {
    std::int64_t server = -1;
    Rail own_rail = kNoRail;
  };
  struct ServerPlace {
    TreeNeighbour parent;
    std::vector<TreeNeighbour> children;
  };

  [[nodiscard]] std::int64_t num_local() const override { return local_; }

  [[nodiscard]] Rank parent(std::int32_t lane, Rank rank) const override {
    const std::int64_t up = places_[lane][static_cast<std::size_t>(rank / local_)].parent.server;
    return up < 0 ? -1 : static_cast<Rank>(up * local_ + rank % local_);
  }

  [[nodiscard]] TreePlace place(std::int32_t lane, Rank rank) const override {
    const ServerPlace& place = places_[lane][static_cast<std::size_t>(rank / local_)];
    TreePlace made{.lane = lane,
                   .blocks = shape_.lanes[lane].blocks,
                   .local = rank % local_,
                   .num_local = local_,
                   .parent = {},
                   .children = {}};
    const auto link = [&](const TreeNeighbour& other) {
      return PeerLink{static_cast<Rank>(other.server * local_ + made.local), other.own_rail, other.own_rail};
    };
    if (place.parent.server >= 0) made.parent = link(place.parent);
    for (const TreeNeighbour& child : place.children) made.children.push_back(link(child));
    return made;
  }

  void add_places(const WeightedTree& tree, std::int64_t servers) {
    std::vector<std::vector<TreeNeighbour>> near(static_cast<std::size_t>(servers));
    for (const TreeEdge& edge : tree.edges) {
      near[edge.a].push_back({edge.b, edge.a_rail});
      near[edge.b].push_back({edge.a, edge.b_rail});
    }
    std::vector<ServerPlace> places(near.size());
    std::vector<std::int64_t> order{tree.root};
    for (std::size_t i = 0; i < order.size(); ++i) {
      ServerPlace& place = places[order[i]];
      for (const TreeNeighbour& other : near[order[i]]) {
        if (other.server == place.parent.server) continue;
        place.children.push_back(other);
        order.push_back(other.server);
        for (const TreeNeighbour& back : near[other.server])
          if (back.server == order[i]) places[other.server].parent = back;
      }
      std::ranges::sort(place.children, {}, &TreeNeighbour::server);
    }
    places_.push_back(std::move(places));
  }

  std::int64_t local_;
  std::vector<std::vector<ServerPlace>> places_;  ///< by tree and server
};

}  // namespace

MadeBuilder make_trees(const Topology& topology, const PlanRequest& request) {
  if (Status status = reject_foreign_options("trees", request, {}); !status.ok())
    return fail(std::move(status));
  // One server alone: HiPS reduces over its ranks.
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
