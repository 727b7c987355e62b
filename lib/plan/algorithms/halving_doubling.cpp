// "halving-doubling": reduce-scatter by recursive halving, then all-gather by recursive doubling, for any
// number of ranks. It is a hierarchy of radix 2: the digits of core member v are its bits, bit 0 first. A
// level in front reduces each pair beyond the power of two into its second member.
//
//   6 ranks    reduce 0->1 2->3 | bit 0 | bit 1 || bit 1 | bit 0 | copy 1->0 3->2

#include <fmt/format.h>

#include "lib/pattern/halving.hpp"
#include "lib/plan/algorithms/algorithms.hpp"
#include "lib/plan/algorithms/butterfly.hpp"
#include "lib/plan/algorithms/options.hpp"

namespace hips::plan {

MadeBuilder make_halving_doubling(const Topology& topology, const PlanRequest& request) {
  if (Status status = reject_foreign_options("halving-doubling", request, {}); !status.ok())
    return fail(std::move(status));
  return make_butterfly(
      topology, "halving-doubling", fmt::format("halving-doubling of {} ranks", topology.num_ranks()),
      [](std::int64_t member, std::int32_t round) {
        return ButterflyExchange{pattern::exchange_peer(member, round), member >> round & 1};
      });
}

}  // namespace hips::plan
