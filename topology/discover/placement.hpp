#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "topology/discover/segments.hpp"

namespace hips::topology {

/// Which seen server and NIC each one of a family is.
struct Placement {
  std::vector<std::size_t> server_of;             ///< by the family's server
  std::vector<std::vector<std::int32_t>> nic_of;  ///< by the family's server and rail; -1: it leads nowhere
};

enum class NicOrder {
  kAsNumbered,  ///< NIC k of every server is rail k
  kAny,         ///< cables may be in other NICs at every server
};

/// Finds out whether two graphs of segments are one but for the names of servers, segments and, with
/// NicOrder::kAny, NICs. Where both have the same order of servers already, that is the answer.
///
/// Cost     servers are placed one after the other, each beside as many placed neighbours as there are, and
///          undone where the next one fits nowhere. Regular families hardly ever have to be; gives up (no
///          answer) after a fixed number of steps, or with more than kMostAdjacent pairs of neighbours.
/// Threads  pure; any thread.
/// Source   the backtracking of Ullmann 1976, doi:10.1145/321921.321925, in the order of VF2++ (Juettner and
///          Madarasi 2018): most placed neighbours first.
std::optional<Placement> place(const Segments& family, const Segments& seen, NicOrder order);

/// Pairs of neighbours that place() looks at.
inline constexpr std::size_t kMostAdjacent = 8'000'000;

}  // namespace hips::topology
