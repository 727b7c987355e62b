#pragma once

#include <cstdint>

#include <hips/status.hpp>
#include <hips/topology.hpp>

namespace hips::picture {

/// The largest number of servers and switches that a readable picture can have.
inline constexpr std::int64_t kMostDrawn = 2000;

/// The largest number of servers and switches that a picture with counts can have (overview_drawing.hpp).
inline constexpr std::int64_t kMostCounted = 100'000;

/// Above so many servers and switches, a picture counts them.
inline constexpr std::int64_t kMostNamed = 200;

/// The largest width of a picture that a screen shows without scrolling or shrinking its text.
inline constexpr double kMostWidth = 1900;

/// The largest number of steps of all ranks that browsers can animate smoothly.
inline constexpr std::int64_t kMostDrawnSteps = 60'000;

/// Checks that a topology can be drawn.
///
/// Errors   kUnsupported: more than kMostDrawn servers and switches.
Status drawable(const Topology& topology);

/// The same for pictures with counts.
///
/// Errors   kUnsupported: more than kMostCounted servers and switches.
Status countable(const Topology& topology);

}  // namespace hips::picture
