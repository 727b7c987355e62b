#pragma once

#include <CLI/CLI.hpp>

namespace hips::cli {

// The subcommands of `hips info`, one file each. `hips info` alone calls the print_* functions in turn.

void add_info_select(CLI::App& info);
void add_info_env(CLI::App& info);

/// Prints every variable with its value, the origin of the value, and its default; then invalid and unknown
/// settings.
void print_variables(bool with_meaning);

}  // namespace hips::cli
