#pragma once

#include <string_view>

#include <string>

#include "topology/cabling/cabling.hpp"

namespace hips::topology {

/// Decides whether the nodes of unknown kind are servers or switches, from their cables and names:
///
///   - a node with one cable is a server, and what an unknown node shares a cable with a server is a switch;
///   - where half of the nodes whose names differ in numbers only have one cable, and none has a neighbour with one, all of
///     these are servers: hosts some of which have a second NIC;
///   - else it is a server if it has no more cables than the known servers, all of them to switches;
///   - if no server is known so: of a wiring of two sides whose cables all lead across, the side whose nodes have fewer
///     cables has the servers; without two such sides, or with equally many cables, all are servers.
///
/// A note names what was taken for switches. `name` is that of the file.
///
/// Cost     linear in nodes and cables.
void decide_kinds(std::string_view name, Cabling& cabling);

}  // namespace hips::topology
