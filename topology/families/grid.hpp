#pragma once

#include <string>

#include "topology/families/family.hpp"

namespace hips::topology {

/// The common part of torus and mesh: servers on a grid of any number of dimensions, without switches. NIC 2i
/// of a server is its "+" port in dimension i, NIC 2i+1 its "-" port.

/// Makes `keyword:AxBxC` with levels of a kind: kRing, whose last server has a cable to the first, or kLine.
Result<Topology> make_grid(const Spec& spec, std::string_view keyword, std::string_view name, LevelKind kind);

/// "(x,y)".
std::string grid_address(const Topology& topology, std::span<const std::int64_t> digits);

/// "": there is no switch.
std::string grid_switch_name(const Topology& topology, std::int64_t server, Rail rail);

/// Adds a cable from each server's "+" port to the "-" port of the next server in that dimension.
void wire_grid(const Topology& topology, Graph& graph);

}  // namespace hips::topology
