#include "tools/hips/picture/drawable.hpp"

#include <fmt/format.h>

namespace hips::picture {

namespace {

Status at_most(const Topology& topology, std::int64_t most) {
  if (topology.num_servers() + topology.num_switches <= most) return {};
  return Status::error(
      Code::kUnsupported,
      fmt::format("topology \"{}\" has {} servers and {} switches; a picture can have at most {} in all",
                  topology.spec, topology.num_servers(), topology.num_switches, most));
}

}  // namespace

Status drawable(const Topology& topology) {
  return at_most(topology, kMostDrawn);
}

Status countable(const Topology& topology) {
  return at_most(topology, kMostCounted);
}

}  // namespace hips::picture
