#pragma once

#include <hips/status.hpp>

namespace hips {

/// The last thing of a program that prints its results: writes out what stdout still holds, and asks whether
/// all of it, now and before, has reached whoever reads it. A full disk must not look like a result.
///
/// Errors   kSystem: "cannot write the output: No space left on device".
Status printed();

}  // namespace hips
