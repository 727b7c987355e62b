#pragma once

#include <CLI/CLI.hpp>

namespace hips::cli {

/// Each subcommand of `hips` is a file of commands/ with one function here, which adds the options to `app`
/// and sets a callback. A callback reports bad input by throwing hips::Error. main() then prints "hips:
/// <sentence>" on stderr and exits with 2 for an error in the command line, 1 for any other error.
void add_topo(CLI::App& app);
void add_topo_discover(CLI::App& topo);
void add_topo_diff(CLI::App& topo);
void add_plan(CLI::App& app);
void add_check(CLI::App& app);
void add_compare(CLI::App& app);
void add_info(CLI::App& app);
void add_run(CLI::App& app);
void add_trace(CLI::App& app);
/// `program`: take_program().
void add_lab(CLI::App& app, const std::vector<std::string>& program);
void add_doctor(CLI::App& app);
void add_completion(CLI::App& app);

}  // namespace hips::cli
