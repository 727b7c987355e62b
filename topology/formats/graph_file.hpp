#pragma once

#include <string>
#include <unordered_map>

#include "topology/formats/file_values.hpp"

namespace hips::topology {

/// The shape of files that list every cable.
inline constexpr std::string_view kGraphShape = "graph";

/// Begins to read a file of that shape: makes a topology with servers.count servers, whose wiring is not known yet.
///
/// Errors   kInvalidArgument: no count, or keys that such a file has not.
Result<void> begin_graph(const FileValues& values, const YamlNode& root, TopologyFile& file);

/// Reads `switches` and `cables` of such a file into file.topology. Requires that the names of servers have been read.
///
/// Shapes   {server, nic, switch[, rate][, latency][, state]}, {server, nic, to, to-nic, ...} or {switches: [A, B][, cables], ...}.
/// Errors   kInvalidArgument: unknown servers or switches, two cables at one NIC.
Result<void> read_graph(const FileValues& values, const YamlNode& root,
                        const std::unordered_map<std::string, std::int64_t>& by_name, TopologyFile& file);

}  // namespace hips::topology
