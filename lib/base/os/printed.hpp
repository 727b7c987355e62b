#pragma once

#include <hips/status.hpp>

namespace hips {

/// Flushes stdout and checks that all output of the program has been written, now and before. A program that
/// prints results calls it last, so that a full disk is an error.
///
/// Errors   kSystem: "cannot write the output: No space left on device".
Status printed();

}  // namespace hips
