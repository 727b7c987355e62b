#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"

namespace hips::topology {

/// May the text have Nodes=ALL or a flat topology, which stand for all nodes of slurm.conf?
bool needs_all_nodes(std::string_view text);

/// The nodes (NodeName=) of the slurm.conf in the folder of the file `path`, with the files that it includes; none if there is no
/// slurm.conf.
///
/// Errors   kInvalidArgument: it cannot be read, or a name is invalid: file and line.
/// Source   slurm.conf(5).
Result<std::vector<std::string>> nodes_of_slurm_conf(const std::string& path);

}  // namespace hips::topology
