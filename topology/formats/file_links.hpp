#pragma once

#include <unordered_map>

#include "topology/formats/file_values.hpp"

namespace hips::topology {

/// Reads the `links` of a topology file into file.topology.overrides and file.told.cables. Requires that levels and the names of
/// servers and switches have been read.
///
/// Shapes   {server, nic[, switch | to, to-nic][, rate][, state]} or {switches: [A, B][, rate][, state][, cables]}.
/// Cost     linear in the links; the graph, if cables between switches are listed.
/// Errors   kInvalidArgument: a cable that the shape does not have, or that occurs twice.
Result<void> read_file_links(const FileValues& values, const YamlNode& links,
                             const std::unordered_map<std::string, std::int64_t>& by_name,
                             TopologyFile& file);

}  // namespace hips::topology
