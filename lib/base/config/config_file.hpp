#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/config/config.hpp"
#include "lib/base/result.hpp"

namespace hips {

/// Reads a file of variables: a line for each, `NAME=value`; "#" begins a comment, blanks around name and
/// value do not count. `name` is the file's, for errors and origins.
///
/// Errors   kInvalidArgument: `name`, line, what stands there and what would be right; a name twice.
/// Threads  pure.
/// Example  parse_config_file("/etc/hips.conf", "HIPS_IB_TC=106  # as our switches expect\n")
Result<std::vector<Setting>> parse_config_file(std::string_view name, std::string_view text);

/// The files of a process: /etc/hips.conf, and .hips.conf in its HOME where it has one.
std::vector<std::string> config_files(const Environment& environment);

/// What files and environment say together: the later file counts, and the environment before all files.
struct GatheredSettings {
  std::vector<Setting> settings;  ///< one for each name; HIPS_ names only
  Status status;  ///< of the first file that cannot be read or is wrong; its lines are left out
};

/// Reads `files`, those that exist, and puts `environment` over them.
GatheredSettings gather_settings(const Environment& environment, std::span<const std::string> files);

}  // namespace hips
