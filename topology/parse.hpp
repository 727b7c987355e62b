#pragma once

#include <string_view>

#include <hips/topology.hpp>

#include "lib/base/result.hpp"

namespace hips::topology {

/// parse_topology() for use inside the library: returns what that throws.
Result<Topology> parse(std::string_view spec);

/// Puts m ranks on each server of a topology that has one on each; `suffix` is what stands behind the "/" of
/// `spec`.
Result<void> add_node_level(std::string_view spec, std::string_view suffix, Topology& topology);

/// The servers of a topology with several ranks on each, with one.
Topology without_node_level(Topology topology);

}  // namespace hips::topology
