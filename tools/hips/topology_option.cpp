#include "tools/hips/topology_option.hpp"

#include "tools/hips/settings.hpp"

namespace hips::cli {

std::string topology_or_environment(const std::string& option) {
  return option.empty() ? settings().topology.value_or("") : option;
}

}  // namespace hips::cli
