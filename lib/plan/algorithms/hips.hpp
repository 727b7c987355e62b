#pragma once

#include <cstdint>
#include <memory>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/base/result.hpp"
#include "lib/plan/plan_builder.hpp"
#include "lib/plan/prunable.hpp"

namespace hips::plan {

/// The shares of the vector that the lanes of a hierarchy get.
enum class LaneShares : std::uint8_t {
  kBalanced,  ///< every NIC carries bytes in proportion to its rate
  kEqual,     ///< one lane for each order of the levels and each direction, with equal shares
};

/// Builds the hierarchy of a topology's levels, regardless of the state of its links; make_hips() decides
/// when to use it.
///
/// Errors   kInvalidArgument: a list of patterns that does not fit the levels.
Result<std::unique_ptr<PrunableBuilder>> make_hierarchy(const Topology& topology, const PlanRequest& request,
                                                        LaneShares shares);

}  // namespace hips::plan
