#pragma once

#include <cstdint>
#include <vector>

#include <hips/topology.hpp>

#include "lib/base/result.hpp"
#include "lib/plan/fabric/hop_graph.hpp"

namespace hips::plan {

/// A spanning tree of the servers and its share of the vector, which goes up to the root and down again.
struct WeightedTree {
  std::vector<TreeEdge> edges;
  double share = 0;  ///< of the vector; the shares of a packing sum to 1
  std::int64_t root = -1;
  std::int64_t depth = 0;  ///< hops from the root to the server that is farthest away
};

/// Spanning trees side by side, for servers that are no hierarchy: parts, slow links, links that are down.
struct TreePacking {
  std::vector<WeightedTree> trees;
  double seconds_per_byte = 0;  ///< of the busiest NIC or tier, each direction
  /// The linear program reached its limit of work: more search might have found slightly better trees.
  bool stopped_early = false;
};

/// For more servers, planning would take a rank more time than a plan saves.
inline constexpr std::int64_t kMostPackedServers = 1024;

/// Packs trees so that the busiest NIC, or the busiest cables above a switch, have as little to carry as
/// possible.
///
/// An allreduce over a tree moves a share of the vector once in each direction over each edge, so a NIC
/// carries this share times the edges that leave by it. Trees are grown one after the other, edge by edge,
/// each where the load per rate is smallest so far. A linear program then weighs them, and new trees are
/// searched for by its duals until none improves it. Of the trees with equal shares and those of the program
/// the fewer are taken if they cost less than 2 % more.
///
/// Shapes   2..kMostPackedServers servers.
/// Cost     tens of ms for a hundred servers, a second for a thousand. The same on every rank: only + - * /
///          of doubles, in one order.
/// Threads  pure; any thread.
/// Errors   kUnsupported: too many servers; or some cannot reach the others, and which.
/// Source   Garg and Könemann 1998 for growing by exponential costs (powers here); Tutte 1961 and
///          Nash-Williams 1961 for the optimum over trees. Zhao et al., ForestColl, 2024, packs such trees
///          for one-way collectives.
Result<TreePacking> pack_trees(const Topology& topology);

/// Partitions of the servers that may give a lower bound for any plan: [i][server], the part that a server is
/// in, coarser ones later.
///
/// The duals of the linear program that weighs the trees are 0 on links with spare capacity. For each cost
/// that occurs, servers between which all links are cheaper are one part. The links between the parts of such
/// a partition limit the trees, and often any plan.
///
/// Cost     that of pack_trees(). None for more NICs than the program is solved for, and where servers do not
///          reach each other.
/// Threads  pure; any thread.
/// Source   Nash-Williams 1961, Tutte 1961: the number of disjoint trees is the minimum over such partitions.
std::vector<std::vector<std::int64_t>> partitions_by_cost(const Topology& topology);

}  // namespace hips::plan
