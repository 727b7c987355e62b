#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/config/config.hpp"
#include "lib/base/result.hpp"

namespace hips {

/// Reads a file of variables, one `NAME=value` on each line. "#" begins a comment; blanks around name and
/// value are ignored. `name` is the file's name, for errors and origins.
///
/// Errors   kInvalidArgument: `name`, line, the text and what would be right; a variable that appears twice.
/// Threads  pure.
/// Example  parse_config_file("/etc/hips.conf", "HIPS_IB_TC=106  # as our switches expect\n")
Result<std::vector<Setting>> parse_config_file(std::string_view name, std::string_view text);

/// The configuration files of a process: /etc/hips.conf, and .hips.conf in HOME if that is set.
std::vector<std::string> config_files(const Environment& environment);

/// The settings of files and environment. A later file overrides an earlier one; the environment overrides
/// all files.
struct GatheredSettings {
  std::vector<Setting> settings;  ///< one for each HIPS_* name
  Status status;                  ///< of the first file that is unreadable or invalid; its lines are left out
};

/// Reads those of `files` that exist, and then applies `environment`.
GatheredSettings gather_settings(const Environment& environment, std::span<const std::string> files);

}  // namespace hips
