#pragma once

#include <string_view>

namespace hips::cli {

/// Writes out what stdout still holds. Where that fails, or an earlier write did, says so on stderr: a full
/// disk must not look like a plan of no lines.
///
/// Shapes   `code` is the exit code of the command; `command` its name for the sentence, such as "plan", or
///          "".
/// Result   `code`; 1 where that is 0 and the output is not all there.
int finish_output(int code, std::string_view command);

}  // namespace hips::cli
