#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <hips/topology.hpp>

#include "lib/plan/plan_builder.hpp"

namespace hips::plan {

/// How the ranks of a recursive exchange are grouped.
struct ExchangeGroups {
  std::int64_t rest = 0;              ///< ranks outside the core (lib/pattern/pairs.hpp)
  std::vector<std::int64_t> radices;  ///< of each round; their product is the number of ranks in the core
};

/// Builds a recursive exchange: in each round the members of a group send their whole partial sums to each other, so that
/// after the last one every rank has the sum of all.
///
/// Every rank computes every element, so all of them must compute the same bits. They do: operands are in the order of the
/// ranks. All ranks reduce the same operands in the same brackets, and neither the payload of a NaN nor the sign of a zero
/// depends on the rank.
///
/// Shapes   any number of ranks; one block.
/// Cost     a step for each round, 2 more with ranks outside the core; radix - 1 vectors per NIC direction and round.
std::unique_ptr<PlanBuilder> make_recursive_exchange(const Topology& topology, std::string algorithm,
                                                     std::string description, ExchangeGroups groups);

}  // namespace hips::plan
