#pragma once

#include "tools/hips-write/options.hpp"

namespace hips::write {

/// Runs the program and returns its exit code: main() of both programs.
int run_program(WriteProgram program, int argc, const char* const* argv);

}  // namespace hips::write
