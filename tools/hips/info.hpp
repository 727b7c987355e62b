#pragma once

#include <CLI/CLI.hpp>

namespace hips::cli {

// The subcommands of `hips info`, each a file; print_* are what `hips info` alone prints one after the other.

void add_info_select(CLI::App& info);
void add_info_env(CLI::App& info);

/// Every variable with its value, where that comes from and its default; what is wrong or unknown below.
void print_variables(bool with_meaning);

}  // namespace hips::cli
