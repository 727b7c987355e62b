// "bine": recursive halving and doubling between ranks at distances 1, 1, 3, 5, 11, ... to alternating sides,
// for any number of ranks. Partners are closer together than with powers of two, which keeps bytes below
// switches that the topology does not describe.
//
//   8 ranks, rank 0    exchanges with 1, 7, 3 (powers of two: 1, 2, 4)

#include <fmt/format.h>

#include "lib/pattern/halving.hpp"
#include "lib/pattern/swing.hpp"
#include "lib/plan/algorithms/algorithms.hpp"
#include "lib/plan/algorithms/butterfly.hpp"
#include "lib/plan/algorithms/options.hpp"

namespace hips::plan {

/// Builds the Bine butterfly: reduce-scatter by halving, nearest partners first, and all-gather back.
///
/// Shapes   any number of ranks; a block for each of the largest power of two among them.
/// Cost     2 log2 N steps, 2 more where N is no power of two; 2(N-1)/N of the vector per NIC direction.
/// Source   De Sensi, Pasqualoni, Piarulli, Bonato, Ba, Turisini, Domke, Hoefler: Bine Trees, SC 2025.
MadeBuilder make_bine(const Topology& topology, const PlanRequest& request) {
  if (Status status = reject_foreign_options("bine", request, {}); !status.ok())
    return fail(std::move(status));
  const pattern::Swing swing{pattern::Halving{topology.num_ranks()}.core(), +1};
  return make_butterfly(
      topology, "bine",
      fmt::format("binomial negabinary halving and doubling of {} ranks", topology.num_ranks()),
      [swing](std::int64_t member, std::int32_t round) {
        return ButterflyExchange{pattern::swing_peer(swing, member, round),
                                 pattern::swing_half(swing, member, round)};
      });
}

}  // namespace hips::plan
