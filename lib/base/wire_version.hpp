#pragma once

#include <cstdint>

namespace hips {

/// Incremented with every change of what ranks send each other: hello, control frames, what they exchange at
/// set-up, data headers.
inline constexpr std::uint32_t kWireVersion = 23;

}  // namespace hips
