#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace hips::cli {

/// The command that was typed, without "hips": "plan", "topo discover", "" before one is known.
std::string command_name(const CLI::App& app);

/// The sentences for wrong arguments: "hips: <command>: <sentence>", as for every other error, and for a word
/// that is no command the ones that there are.
std::string argument_error(const CLI::App* app, const CLI::Error& error);

}  // namespace hips::cli
