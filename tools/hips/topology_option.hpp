#pragma once

#include <string>

namespace hips::cli {

/// The spec that a command works on: its -t, else HIPS_TOPO, else the file of HIPS_TOPO_FILE, as the
/// environment or the files of settings have them; "" where none is named.
///
/// Errors   throws what is wrong with settings(), where it reads them.
std::string topology_or_environment(const std::string& option);

}  // namespace hips::cli
