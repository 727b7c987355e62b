#pragma once

#include <string_view>

#include "lib/base/result.hpp"
#include "topology/parts/restrict.hpp"

namespace hips::topology {

/// Reads a hostfile of Open MPI ("node0 slots=2 max-slots=4") or MPICH ("node0:2"): one host per line. The
/// slots of several lines with the same host add up. "#" begins a comment.
///
/// Errors   kInvalidArgument: `name` of the file, line, the value seen and what would be right.
///          kUnsupported: hosts with different numbers of ranks.
Result<JobHosts> read_hostfile(std::string_view name, std::string_view text);

/// Reads a hostlist, as in SLURM_JOB_NODELIST. Errors kInvalidArgument, also for a host that occurs twice.
Result<JobHosts> read_nodelist(std::string_view text);

}  // namespace hips::topology
