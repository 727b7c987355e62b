#pragma once

#include <string_view>

namespace hips::cli {

/// Writes text to stdout, byte for byte.
void write_stdout(std::string_view text);

/// Flushes stdout. If that or an earlier write failed, reports it on stderr: a full disk must not look like
/// an empty plan.
///
/// Shapes   `code` is the exit code of the command; `command` its name for the message, such as "plan", or "".
/// Result   `code`, or 1 if `code` is 0 and output was lost.
int finish_output(int code, std::string_view command);

}  // namespace hips::cli
