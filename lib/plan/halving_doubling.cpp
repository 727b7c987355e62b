// "halving-doubling": recursive halving reduce-scatter, then recursive doubling all-gather, for any number of
// ranks. It is a hierarchy of radix 2: core member v has the bits of v as digits, bit 0 first. In front
// stands a level at which each pair beyond the power of two folds into one, the odd one leading.
//
//   6 ranks    fold 0->1 2->3 | bit 0 | bit 1 || bit 1 | bit 0 | serve 1->0 3->2

#include <fmt/format.h>

#include "lib/pattern/halving.hpp"
#include "lib/plan/butterfly.hpp"
#include "lib/plan/flat.hpp"

namespace hips::plan {

MadeBuilder make_halving_doubling(const Topology& topology, const PlanRequest& request) {
  if (Status status = refuse_foreign_options("halving-doubling", request, {}); !status.ok())
    return fail(std::move(status));
  return make_butterfly(topology, "halving-doubling",
                        fmt::format("halving-doubling of {} ranks", topology.num_ranks()),
                        [](std::int64_t member, std::int32_t round) {
                          return Exchange{pattern::exchange_peer(member, round), member >> round & 1};
                        });
}

}  // namespace hips::plan
