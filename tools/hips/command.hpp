#pragma once

#include <CLI/CLI.hpp>

namespace hips::cli {

/// Each subcommand of `hips` is a file of this folder with one function here: it adds its options to `app`
/// and sets a callback. A callback reports bad input by throwing hips::Error; main() prints "hips:
/// <sentence>" on stderr and exits 2 for what the caller wrote wrongly, 1 for everything else.
void add_topo(CLI::App& app);
void add_topo_discover(CLI::App& topo);
void add_plan(CLI::App& app);
void add_check(CLI::App& app);
void add_compare(CLI::App& app);
void add_info(CLI::App& app);
void add_run(CLI::App& app);
void add_trace(CLI::App& app);
void add_lab(CLI::App& app);
void add_doctor(CLI::App& app);
void add_completion(CLI::App& app);

}  // namespace hips::cli
