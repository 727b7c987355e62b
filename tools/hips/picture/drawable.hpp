#pragma once

#include <cstdint>

#include <hips/status.hpp>
#include <hips/topology.hpp>

namespace hips::picture {

/// The largest number of servers and switches that a readable picture can have.
inline constexpr std::int64_t kMostDrawn = 2000;

/// The largest number of steps of all ranks that browsers can animate smoothly.
inline constexpr std::int64_t kMostDrawnSteps = 60'000;

/// Checks that a topology can be drawn.
///
/// Errors   kUnsupported: more than kMostDrawn servers and switches.
Status drawable(const Topology& topology);

}  // namespace hips::picture
