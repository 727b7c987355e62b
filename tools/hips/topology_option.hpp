#pragma once

#include <string>

namespace hips::cli {

/// The spec that a command works on: its -t, else HIPS_TOPO, else the file of HIPS_TOPO_FILE; "" where none
/// is named.
std::string topology_or_environment(const std::string& option);

}  // namespace hips::cli
