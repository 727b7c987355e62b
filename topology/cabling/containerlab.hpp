#pragma once

#include <string_view>

#include "lib/base/result.hpp"
#include "topology/cabling/cabling.hpp"

namespace hips::topology {

/// Is the text a topology of containerlab?
bool is_containerlab(std::string_view text);

/// Reads its links: `endpoints: ["a:e1", "b:e1"]`, or a list of mappings with node and interface. A node is a server or a switch
/// by its group ("hosts", "leaf"), otherwise by its kind: bridges and the systems of switches are switches, and of containers
/// ("linux") nothing is known. Links to the machine that runs the lab are dropped with a note.
///
/// Cost     that of read_yaml().
/// Errors   kInvalidArgument: `name` of the file, line, the value seen and what would be right. Those of read_yaml().
/// Source   containerlab.dev, "Topology definition".
Result<Cabling> read_containerlab(std::string_view name, std::string_view text);

}  // namespace hips::topology
