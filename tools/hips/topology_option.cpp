#include "tools/hips/topology_option.hpp"

#include <cstdlib>

namespace hips::cli {
namespace {

std::string value_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string topology_or_environment(const std::string& option) {
  if (!option.empty()) return option;
  if (std::string spec = value_of("HIPS_TOPO"); !spec.empty()) return spec;
  const std::string file = value_of("HIPS_TOPO_FILE");
  return file.empty() ? "" : "file:" + file;
}

}  // namespace hips::cli
