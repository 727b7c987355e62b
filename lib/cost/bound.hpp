#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <hips/topology.hpp>

namespace hips::cost {

/// A way to cut the servers into parts, and what every allreduce must send across it.
struct Cut {
  std::string name;  ///< for people: "single servers", "groups of level 1", "pods"
  std::int64_t num_parts = 0;
  double part_bandwidth_bytes_per_s = 0;  ///< from one part to the others, one direction; the parts' mean
  double seconds_per_byte = 0;            ///< no allreduce of W bytes takes less than W times this
};

/// The lower bound of any allreduce on a topology, per byte of the vector.
struct Bound {
  std::vector<Cut> cuts;    ///< single servers first; of the cuts by levels the largest, then tiers of a tree
  std::size_t largest = 0;  ///< in `cuts`; the first of equals

  [[nodiscard]] const Cut& cut() const { return cuts[largest]; }
  [[nodiscard]] double seconds(double bytes) const { return cut().seconds_per_byte * bytes; }
};

/// How fast any allreduce can possibly be.
///
/// Cut the servers into m equal parts, each with bandwidth X to the others. For every element m-1 messages
/// must cross before some part has seen all parts' inputs, and m-1 more before all have the result: 2(m-1)W
/// bytes over m*X, so T >= 2(m-1)W / (m*X).
///
/// Parts tried: single servers; the servers equal in the digits of S, for every set S of levels, where levels
/// have NICs of their own; the servers of one edge switch and of one pod in a Fat-Tree. Valid where only
/// servers add and copy. Several ranks of a server are one: what stays inside costs no NIC.
///
/// Where servers are in use in part, or links are not as their levels say, what leaves a part is the maximum
/// flow in the wiring as it is, and parts need not be alike: graph_bound().
///
/// Cost     levels of equal radix and rate are alike, so the sets tried are those of different size in each
///          kind of level; a million servers take microseconds.
/// Threads  pure; any thread.
Bound bound(const Topology& topology);

/// A wiring with more cables has only the cut into single servers by the rates of their NICs, which is a
/// bound, too, though not the best that flows would find.
inline constexpr std::int64_t kMostFlowLinks = 4000;

/// The bound of a wiring of any kind, whose m parts send X(S_1), ..., X(S_m): T >= 2(m-1)W / sum X(S_i).
///
/// Parts tried: single servers; the two sides of the narrowest cut of all, which is exact; the servers that
/// are joined by more than a width, for each of the narrowest widths; the servers equal in the digits of
/// every set of levels; those below each switch of a tree.
///
/// Cost     a maximum flow for each part that is tried: a tenth of a second for a hundred servers.
/// Threads  pure; any thread.
/// Source   Gusfield: Very simple methods for all pairs network flow analysis, SIAM J. Computing 1990; the
///          best of all partitions would be the strength of the graph, Tutte 1961 and Nash-Williams 1961.
Bound graph_bound(const Topology& topology);

}  // namespace hips::cost
