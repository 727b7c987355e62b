#pragma once

#include <string>
#include <string_view>

#include <hips/status.hpp>

namespace hips {

/// Replaces the content of a file with `text` in one step: a reader sees the old or the new content. If
/// several jobs write the same file at the same time, one of them wins.
///
/// It replaces a regular file, or creates one, and follows symbolic links. If the name belongs to anything
/// else (a device, a pipe), it writes the text into that.
///
/// Threads  any.
/// Errors   kSystem, with `sys_errno`; the file is unchanged. The message completes a sentence about the file:
///          "cannot be written: No space left on device".
/// Example  Status status = replace_file("bcube.table", table.text());
Status replace_file(const std::string& path, std::string_view text);

}  // namespace hips
