#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "topology/discover/segments.hpp"

namespace hips::topology {

/// The observed server and NIC for each server and rail of a family.
struct Placement {
  std::vector<std::size_t> server_of;             ///< by the family's server
  std::vector<std::vector<std::int32_t>> nic_of;  ///< by the family's server and rail; -1: not connected
};

enum class NicOrder {
  kAsNumbered,  ///< NIC k of every server is rail k
  kAny,         ///< cables may be in different NICs at every server
};

/// Finds out whether two graphs of segments are isomorphic: equal except for the numbers of servers, segments
/// and, with NicOrder::kAny, NICs. If both already have the same order of servers, this order is returned.
///
/// Cost     servers are placed one after the other, those with most placed neighbours first, with
///          backtracking, which regular families hardly need. Gives up (no result) after a fixed number of
///          steps, or with more than kMostAdjacent pairs of neighbours.
/// Threads  pure; any thread.
/// Source   the backtracking of Ullmann 1976, doi:10.1145/321921.321925, in the order of VF2++ (Juettner and
///          Madarasi 2018): most placed neighbours first.
std::optional<Placement> place(const Segments& family, const Segments& seen, NicOrder order);

/// The most pairs of neighbours that place() considers.
inline constexpr std::size_t kMostAdjacent = 8'000'000;

}  // namespace hips::topology
