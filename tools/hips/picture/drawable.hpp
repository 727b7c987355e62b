#pragma once

#include <cstdint>

#include <hips/status.hpp>
#include <hips/topology.hpp>

namespace hips::picture {

/// More servers and switches than this make no picture that anybody can read.
inline constexpr std::int64_t kMostDrawn = 2000;

/// More steps than this, of all ranks, make a page that no browser moves smoothly.
inline constexpr std::int64_t kMostDrawnSteps = 60'000;

/// Can it be drawn? Errors kUnsupported: more than kMostDrawn servers and switches; one line with both.
Status drawable(const Topology& topology);

}  // namespace hips::picture
