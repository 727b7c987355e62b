#include "tools/hips/picture/drawable.hpp"

#include <fmt/format.h>

namespace hips::picture {

Status drawable(const Topology& topology) {
  if (topology.num_servers() + topology.num_switches <= kMostDrawn) return {};
  return Status::error(
      Code::kUnsupported,
      fmt::format("topology \"{}\" has {} servers and {} switches; a picture can have at most {} in all",
                  topology.spec, topology.num_servers(), topology.num_switches, kMostDrawn));
}

}  // namespace hips::picture
