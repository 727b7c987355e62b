#pragma once

#include <string>
#include <string_view>

namespace hips::cli {

/// The topology that a command works on: its -t, else HIPS_TOPO, else the file of HIPS_TOPO_FILE, from the
/// environment or the settings files; "" if none is named.
///
/// Errors   (thrown) those of settings(), if it has to read them.
std::string topology_or_environment(const std::string& option);

/// The same for commands that need a topology; `command` is the name for the message, such as "lab run".
///
/// Errors   (thrown) as above; kInvalidArgument: none is named.
std::string required_topology(std::string_view command, const std::string& option);

}  // namespace hips::cli
