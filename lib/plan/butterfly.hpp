#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/plan/builder.hpp"

namespace hips::plan {

/// A round of a butterfly, for one member of its core.
struct Exchange {
  std::int64_t peer = 0;  ///< member with which it exchanges
  std::int64_t half = 0;  ///< of the two halves, the one that it keeps: 0 or 1
};

/// Who exchanges with whom: a member of the core, 0 to 2^rounds - 1, and the round.
using ExchangeOf = std::function<Exchange(std::int64_t member, std::int32_t round)>;

/// Builds a butterfly: a reduce-scatter by halving in log2 rounds, and an all-gather back. The core is the
/// largest power of two; of each pair of ranks beyond it the even one folds into the odd one before, and is
/// served after.
///
/// Shapes   any number of ranks; a block for each rank of the core.
/// Cost     2 log2 N steps, 2 more where N is no power of two; 2(N-1)/N of the vector per NIC direction.
std::unique_ptr<PlanBuilder> make_butterfly(const Topology& topology, std::string algorithm,
                                            std::string description, ExchangeOf exchange);

}  // namespace hips::plan
