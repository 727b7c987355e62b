#pragma once

#include <string>
#include <string_view>

#include "topology/cabling/cabling.hpp"

namespace hips::topology {

/// Decides whether the nodes of unknown kind are servers or switches, from their cables and names:
///
///   - a name with a word such as "leaf", "tor" or "gpu" tells; of the nodes that have cables to such switches only, those with the
///     fewest cables are servers if no name tells a server;
///   - a node with one cable, which is not to a known server, is a server, and what shares a cable with a server is a switch;
///   - if at least half of the nodes whose names are alike but for numbers have one cable, and none of them is a switch or
///     shares a cable with a server, all are servers: hosts some of which have a second NIC;
///   - else it is a server if it has no more cables than the known servers, all of them to switches;
///   - if no server is known so, or less than a quarter of the nodes have one cable and the file tells no server: of a wiring of two
///     sides whose cables all lead across, the side whose nodes have fewer cables has the servers; without two such sides, or with
///     equally many cables, all are servers. Where the file tells switches, the latter holds only if no server is known.
///
/// A note names what was taken for switches. `name` is that of the file.
///
/// Cost     linear in nodes and cables.
void decide_kinds(std::string_view name, Cabling& cabling);

/// Does the file or a name tell a server or a switch? Otherwise decide_kinds() goes by the cables alone.
bool tells_kinds(const Cabling& cabling);

/// Takes all nodes for servers, with a note.
void take_all_for_servers(std::string_view name, Cabling& cabling);

/// An example of --hosts for this file, made of short names of nodes with few cables: "--hosts '^n[0-9]+$'".
std::string example_of_hosts(const Cabling& cabling);

}  // namespace hips::topology
