#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <hips/topology.hpp>

namespace hips::cost {

/// A partition of the servers, and what every allreduce must send between its parts.
struct Cut {
  std::string name;  ///< for people: "single servers", "groups of level 1", "pods"
  std::int64_t num_parts = 0;
  double part_bandwidth_bytes_per_s = 0;  ///< from a part to the others, one direction; mean of all parts
  double seconds_per_byte = 0;            ///< an allreduce of W bytes takes at least W times this
};

/// The lower bound of any allreduce on a topology, per byte of the vector.
struct Bound {
  std::vector<Cut> cuts;    ///< single servers; the largest of the cuts by levels; tiers of a tree
  std::size_t largest = 0;  ///< index into `cuts`; the first of equals

  [[nodiscard]] const Cut& cut() const { return cuts[largest]; }
  [[nodiscard]] double seconds(double bytes) const { return cut().seconds_per_byte * bytes; }
};

/// Computes the lower bound of the time of any allreduce.
///
/// Cut the servers into m equal parts, each with bandwidth X to the others. For every element m-1 messages
/// must cross before some part has seen all parts' inputs, and m-1 more before all have the result: 2(m-1)W
/// bytes over m*X, so T >= 2(m-1)W / (m*X).
///
/// Partitions tried: single servers; the servers with equal digits in S, for every set S of levels, if levels
/// have their own NICs; the servers of one edge switch and of one pod in a Fat-Tree. The bound is valid if
/// only servers add and copy. The ranks of a server count as one, as messages inside it use no NIC.
///
/// If only some servers are in use, or links differ from their level, graph_bound() computes the bound from
/// maximum flows in the actual wiring.
///
/// Cost     levels of equal radix and rate are interchangeable, so only sets that differ in their number of
///          levels of each kind are tried; a million servers take microseconds.
/// Threads  pure; any thread.
Bound bound(const Topology& topology);

/// Flows are computed for up to this many cables. For more, only the partition into single servers is tried,
/// by the rates of their NICs: a valid bound, but not the best.
inline constexpr std::int64_t kMostFlowLinks = 4000;

/// Computes the bound of any wiring: m parts with bandwidths X(S_1), ..., X(S_m) give
/// T >= 2(m-1)W / sum X(S_i).
///
/// Partitions tried: single servers; the two sides of the narrowest cut, which is exact; the servers joined
/// by more than a width, for each of the narrowest widths; the servers with equal digits in every set of
/// levels; those below each switch of a tree.
///
/// Cost     a maximum flow for each part of each partition: a tenth of a second for a hundred servers.
/// Threads  pure; any thread.
/// Source   Gusfield: Very simple methods for all pairs network flow analysis, SIAM J. Computing 1990; the
///          best of all partitions would be the strength of the graph, Tutte 1961 and Nash-Williams 1961.
Bound graph_bound(const Topology& topology);

}  // namespace hips::cost
