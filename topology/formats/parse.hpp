#pragma once

#include <string_view>

#include <hips/topology.hpp>

#include "lib/base/result.hpp"

namespace hips::topology {

/// parse_topology() for use inside the library: returns errors instead of throwing.
Result<Topology> parse(std::string_view spec);

/// Puts m ranks on each server of a topology with one rank per server; `suffix` is the text after the "/" of
/// `spec`.
Result<void> add_node_level(std::string_view spec, std::string_view suffix, Topology& topology);

/// Reduces a topology with several ranks per server to one rank per server.
Topology without_node_level(Topology topology);

}  // namespace hips::topology
