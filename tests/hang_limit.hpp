#pragma once

#include <chrono>

namespace hips::test {

/// A wait of a test that takes longer than this hangs. It is far beyond what a loaded machine needs, so that
/// a slow machine fails no test; Meson's timeouts, which tools/check multiplies, are longer still.
inline constexpr std::chrono::seconds kHangLimit{180};

}  // namespace hips::test
