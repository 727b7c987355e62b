#pragma once

#include <string>
#include <string_view>

#include <hips/status.hpp>

namespace hips {

/// Makes `text` all that a file has, in one step: a reader sees the old file or the new one, and of jobs that
/// write the same one at the same time one wins.
///
/// Only nothing or a regular file is replaced, behind symbolic links if there are any. Into whatever else has
/// the name (a device, a pipe) the text is written, and it stays what it is.
///
/// Threads  any.
/// Errors   kSystem, `sys_errno` says why; a file is as it was then. The message is for a sentence about the
///          file: "cannot be written: No space left on device".
/// Example  Status status = replace_file("bcube.table", table.text());
Status replace_file(const std::string& path, std::string_view text);

}  // namespace hips
