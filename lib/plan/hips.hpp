#pragma once

#include <cstdint>

#include "lib/plan/algorithms.hpp"

namespace hips::plan {

/// What share of the vector the lanes of a hierarchy have.
enum class LaneShares : std::uint8_t {
  kBalanced,  ///< those with which every NIC carries the same, for its rate
  kEqual,     ///< one for each order of the levels and each direction, all alike
};

/// A hierarchy of all servers, whatever their links: what make_hips() makes where there is one.
///
/// Errors   kInvalidArgument: a list of patterns that does not fit the levels.
MadeBuilder make_hierarchy(const Topology& topology, const PlanRequest& request, LaneShares shares);

}  // namespace hips::plan
