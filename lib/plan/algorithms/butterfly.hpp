#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/plan/plan_builder.hpp"

namespace hips::plan {

/// One round of a butterfly for one member of its core.
struct ButterflyExchange {
  std::int64_t peer = 0;  ///< the member that it exchanges with
  std::int64_t half = 0;  ///< which of the two halves it keeps: 0 or 1
};

/// The exchange of a core member, 0 to 2^rounds - 1, in a round.
using ExchangeOf = std::function<ButterflyExchange(std::int64_t member, std::int32_t round)>;

/// Builds a butterfly: a reduce-scatter by halving in log2 rounds, and an all-gather back. The core is the
/// largest power of two of ranks. Each pair of ranks beyond it is reduced into its second rank first; the
/// first rank gets the result last.
///
/// Shapes   any number of ranks; a block for each rank of the core.
/// Cost     2 log2 N steps, 2 more where N is no power of two; 2(N-1)/N of the vector per NIC direction.
std::unique_ptr<PlanBuilder> make_butterfly(const Topology& topology, std::string algorithm,
                                            std::string description, ExchangeOf exchange);

}  // namespace hips::plan
