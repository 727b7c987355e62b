#pragma once

#include "tools/hips-write/options.hpp"

namespace hips::write {

/// Connects to the other end, runs all sizes and prints the report. Prints an error as one line on stderr.
///
/// Result   The exit status: 0 if all runs succeeded and all compared data was right.
int run_session(const WriteOptions& options);

}  // namespace hips::write
