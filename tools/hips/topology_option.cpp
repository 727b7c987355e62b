#include "tools/hips/topology_option.hpp"

#include "lib/base/config.hpp"

namespace hips::cli {

std::string topology_or_environment(const std::string& option) {
  if (!option.empty()) return option;
  return load_process_config().config.topology.value_or("");
}

}  // namespace hips::cli
