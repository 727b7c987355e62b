#pragma once

#include "tools/hips-write/options.hpp"

namespace hips::write {

/// Meets the other end, runs all sizes and prints. Gives the exit status: 0 where all went well and all data
/// compared was right; errors go to stderr as one line.
int run_session(const Options& options);

}  // namespace hips::write
