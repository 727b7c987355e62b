#pragma once

#include <string>
#include <vector>

#include "lib/base/result.hpp"
#include "topology/clusters/slurm.hpp"

namespace hips::topology {

/// What Nodes=ALL and flat topologies stand for: the nodes (NodeName=) of the slurm.conf in the folder of SlurmOptions::path, with
/// the files that it includes, each once; SlurmOptions::all_nodes if there is no slurm.conf.
///
/// Errors   kInvalidArgument: slurm.conf cannot be read, or a name is invalid: file and line.
/// Source   slurm.conf(5).
Result<std::vector<std::string>> all_slurm_nodes(const SlurmOptions& options);

}  // namespace hips::topology
