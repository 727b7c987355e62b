#pragma once

#include "tools/hips-write/options.hpp"

namespace hips::write {

/// main() of both programs.
int run_program(Program program, int argc, const char* const* argv);

}  // namespace hips::write
