#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"
#include "topology/clusters/slurm.hpp"
#include "topology/formats/cluster_topology.hpp"
#include "topology/formats/topology_file.hpp"

namespace hips::topology {

/// Lets files be read for a job from now on: one that is refused as a whole is read again for these hosts only, as what is wrong
/// elsewhere does not concern them. Also what Nodes=ALL and flat topologies of Slurm stand for where no slurm.conf tells.
///
/// Threads  call it before files are read.
void read_for_job(std::vector<std::string> hosts);

/// The hosts of the job; none: all of a file is judged.
const std::vector<std::string>& job_of_reading();

inline constexpr std::string_view kNotInFile = "is not in the file; check its name, or add it";

/// Errors   kInvalidArgument: a host of the job is none of `names`, `FILE: host "n7" of the job WHY`.
Result<void> check_job(std::string_view file, std::span<const std::string> names, std::string_view why);

/// A topology of the job's hosts, with a note why the whole file was refused, and what of it was read.
ClusterTopology told_for_job(ClusterTopology of_job, const Status& refused,
                             std::string_view read = "the hosts of the job only");

/// read_slurm_file(), for the job too. Where both are refused, the error of the whole file.
Result<TopologyFile> read_slurm_for_job(const std::string& path, std::string_view text, SlurmOptions options);

}  // namespace hips::topology
