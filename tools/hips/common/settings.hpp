#pragma once

#include <string_view>

#include "lib/base/config/config.hpp"

namespace hips::cli {

/// The settings of the environment and of the settings files, read once per process. Unknown names are
/// reported at that time.
///
/// Errors   throws for a bad file or the first invalid variable. No command may run with half of its
/// settings.
const Config& settings();

/// The same for commands that report bad settings themselves: reports nothing, and returns a status instead
/// of throwing.
LoadedConfig read_settings();

/// Reads settings() before a command begins, so that an invalid one is reported whatever the options are.
/// Does nothing for commands that show settings or pass them on to a program that reads them.
///
/// Example  check_settings("info select")
void check_settings(std::string_view command);

}  // namespace hips::cli
