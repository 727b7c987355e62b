// "recursive-multiplying": recursive doubling in groups of up to 4 (5 or 7 where only they divide the number of ranks)
// instead of 2, so in fewer rounds and with more messages. Up to 5 ranks, and 7, exchange everything in one round.
//
//   9 ranks    groups 0 1 2, 3 4 5, 6 7 8 | groups 0 3 6, 1 4 7, 2 5 8

#include <fmt/format.h>

#include "lib/pattern/multiplying.hpp"
#include "lib/plan/algorithms/algorithms.hpp"
#include "lib/plan/algorithms/options.hpp"
#include "lib/plan/algorithms/recursive_exchange.hpp"

namespace hips::plan {

/// Builds the plan.
///
/// Source   Ruefenacht, Bull, Booth 2017, doi:10.1016/j.parco.2017.08.004.
MadeBuilder make_recursive_multiplying(const Topology& topology, const PlanRequest& request) {
  if (Status status = reject_foreign_options("recursive-multiplying", request, {}); !status.ok())
    return fail(std::move(status));
  const pattern::Multiplying multiplying{topology.num_ranks()};
  return make_recursive_exchange(topology, "recursive-multiplying",
                                 fmt::format("recursive multiplying of {} ranks", multiplying.size),
                                 {.rest = multiplying.rest(), .radices = multiplying.radices()});
}

}  // namespace hips::plan
