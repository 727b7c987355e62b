// "recursive-doubling": ranks exchange their whole partial sums at distances 1, 2, 4, ... Each pair beyond the power of two
// is reduced into its second rank first; the first rank gets the result last. Few messages, most bytes: for tiny vectors.

#include <fmt/format.h>

#include "lib/pattern/halving.hpp"
#include "lib/plan/algorithms/algorithms.hpp"
#include "lib/plan/algorithms/options.hpp"
#include "lib/plan/algorithms/recursive_exchange.hpp"

namespace hips::plan {

MadeBuilder make_recursive_doubling(const Topology& topology, const PlanRequest& request) {
  if (Status status = reject_foreign_options("recursive-doubling", request, {}); !status.ok())
    return fail(std::move(status));
  const pattern::Halving halving{topology.num_ranks()};
  ExchangeGroups groups{.rest = halving.rest(), .radices = {}};
  groups.radices.assign(static_cast<std::size_t>(halving.num_rounds()), 2);
  return make_recursive_exchange(topology, "recursive-doubling",
                                 fmt::format("recursive doubling of {} ranks", halving.size),
                                 std::move(groups));
}

}  // namespace hips::plan
