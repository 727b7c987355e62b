#pragma once

#include "lib/plan/check/check_findings.hpp"

namespace hips::plan {

/// Finds errors that make a plan meaningless: numbers out of range, a block map that does not cover the
/// vector, an operand with other elements than the step's destination. The other parts of the checker rely on
/// this check and must not run when it returns false. Also rejects plans that are too large to check.
///
/// A block has one identity in all buffers: scratch block s holds elements of block s % num_blocks. An
/// operand from other blocks than the destination's would add elements of different places of the vector.
bool check_structure(const Plan& plan, Findings& findings);

}  // namespace hips::plan
