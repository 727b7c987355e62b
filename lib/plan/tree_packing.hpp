#pragma once

#include <cstdint>
#include <vector>

#include <hips/topology.hpp>

#include "lib/base/result.hpp"

namespace hips::plan {

/// One hop between two servers.
struct TreeEdge {
  std::int64_t a = -1, b = -1;
  Rail a_rail = kNoRail, b_rail = kNoRail;
};

/// A spanning tree of the servers that carries a share of the vector: up to its root, and down again.
struct WeightedTree {
  std::vector<TreeEdge> edges;
  double share = 0;  ///< of the vector; those of a packing sum up to 1
  std::int64_t root = -1;
  std::int64_t depth = 0;  ///< hops from the root to the server that is farthest away
};

/// Spanning trees side by side, for servers that are no hierarchy: parts, slow links, links that are down.
struct TreePacking {
  std::vector<WeightedTree> trees;
  double seconds_per_byte = 0;  ///< of the busiest NIC or tier, each direction
};

/// More servers would take a rank more time to plan for than a plan is worth.
inline constexpr std::int64_t kMostPackedServers = 1024;

/// Packs trees so that the busiest NIC, or the busiest cables above a switch, has least to do.
///
/// An allreduce over a tree moves a share of the vector once each way over each edge, so that a NIC carries
/// its share times the edges that leave by it. Trees are grown one after the other, edge by edge, each where
/// least has gone so far for the rate; a linear program then weighs them, and new trees are looked for by its
/// prices until none helps. Of equal shares and the program's the fewer trees are taken, where they cost less
/// than 2 % more.
///
/// Shapes   2..kMostPackedServers servers. Ways to servers of a group of more than 32 are those to the
/// nearest
///          and at distances 2^i.
/// Cost     tens of ms for a hundred servers, a second for a thousand. The same on every rank: only + - * /
/// of
///          doubles, in one order.
/// Threads  pure; any thread.
/// Errors   kUnsupported: too many servers; or some cannot reach the others, and which.
/// Source   Garg and Könemann 1998 for growing by exponential prices (powers here); Tutte 1961 and
///          Nash-Williams 1961 for the optimum over trees. Zhao et al., ForestColl, 2024, packs such trees
///          for one-way collectives.
Result<TreePacking> pack_trees(const Topology& topology);

/// Partitions of the servers that may say how little any plan can do with: [i][server], the part that a
/// server is in, coarser ones later.
///
/// The prices of the linear program that weighs the trees are 0 on links that have room left; servers between
/// which all links are cheaper than some price are a part, for each price that occurs. What the links between
/// the parts of such a partition carry is what limits the trees, and often any plan.
///
/// Cost     that of pack_trees(). None for more NICs than the program is solved for, and where servers do not
/// reach
///          each other.
/// Threads  pure; any thread.
/// Source   Nash-Williams 1961, Tutte 1961: the most trees side by side are told by such a partition.
std::vector<std::vector<std::int64_t>> partitions_by_price(const Topology& topology);

}  // namespace hips::plan
