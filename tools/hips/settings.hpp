#pragma once

#include <string_view>

#include "lib/base/config.hpp"

namespace hips::cli {

/// What the environment and the files of settings say, read once for all of this process; unknown names are
/// reported then.
///
/// Errors   throws what is wrong in them: a file, or the first wrong variable. Nothing that follows from
///          settings may come out of half of them.
const Config& settings();

/// The same for commands that show what is wrong, silently and with a status in place of an exception.
LoadedConfig read_settings();

/// Reads settings() before a command begins, so that a wrong one is told whatever its options say.
/// Commands that show settings, or pass them on to whoever reads them, are left alone.
///
/// Example  check_settings("info select")
void check_settings(std::string_view command);

}  // namespace hips::cli
