#pragma once

#include "lib/plan/check_findings.hpp"

namespace hips::plan {

/// Finds what makes a plan meaningless: numbers out of range, a block map that does not cover the vector, an
/// operand that holds other elements than the step's destination. The other parts of the checker rely on it
/// and must not run when it returns false. Also refuses plans that are too large to check.
///
/// A block has one identity in all buffers: scratch block s holds elements of block s % num_blocks. An
/// operand that were not of the destination's blocks would add elements of different places of the vector.
bool check_structure(const Plan& plan, Findings& findings);

}  // namespace hips::plan
