#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace hips::cli {

/// The command that was typed, without "hips": "plan", "topo discover", "" before one is known.
std::string command_name(const CLI::App& app);

/// The message for wrong arguments: "hips: <command>: <sentence>", in the form of every other error. For an
/// unknown command it lists the valid ones.
std::string argument_error(const CLI::App* app, const CLI::Error& error);

/// Removes the "--" between the options of `hips run` and the program, as people write it after mpirun and srun:
/// CLI11 takes it for the end of all commands.
void remove_separator(const CLI::App& app, std::vector<char*>& arguments);

/// Takes the program of `hips lab run` and `hips lab exec` from the arguments: the words after "--", in which CLI11 would take one in
/// brackets for a list. Empty for other commands, and where there is no "--".
std::vector<std::string> take_program(std::vector<char*>& arguments);

}  // namespace hips::cli
