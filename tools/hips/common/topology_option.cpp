#include "tools/hips/common/topology_option.hpp"

#include <utility>

#include <fmt/format.h>

#include <hips/status.hpp>

#include "tools/hips/common/settings.hpp"
#include "topology/formats/topology_file.hpp"

namespace hips::cli {

std::string topology_or_environment(const std::string& option) {
  return option.empty() ? settings().topology.value_or("") : option;
}

std::string required_topology(std::string_view command, const std::string& option) {
  std::string topology = topology_or_environment(option);
  if (!topology.empty()) return topology;
  throw Error(Status::error(
      Code::kInvalidArgument,
      fmt::format("{}: no topology; give -t SPEC (such as bcube:3,1) or set HIPS_TOPO", command)));
}

}  // namespace hips::cli
