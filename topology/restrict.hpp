#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "topology/topology_file.hpp"

namespace hips::topology {

/// Hosts of a job, in the order in which they are given, and how many ranks each has.
struct JobHosts {
  std::vector<std::string> names;   ///< each once
  std::int32_t ranks_per_host = 1;  ///< the same on all
};

/// Reads a hostfile of Open MPI ("node0 slots=2 max-slots=4") or MPICH ("node0:2"): a host on each line,
/// several lines of one host adding up; "#" begins a comment.
///
/// Errors   kInvalidArgument: `name` of the file, line, what stands there and what would be right;
/// kUnsupported:
///          hosts with different numbers of ranks.
Result<JobHosts> read_hostfile(std::string_view name, std::string_view text);

/// Reads a hostlist, as SLURM_JOB_NODELIST has it. Errors kInvalidArgument, also where a host occurs twice.
Result<JobHosts> read_nodelist(std::string_view text);

/// How the spec of a part begins that no spec describes: nothing reads it back, only a file can hold it.
inline constexpr std::string_view kPartOf = "part-of:";

/// The topology of some servers of a larger one, by their names, in the larger one's order.
///
/// Servers of a switch, as many of each switch of a tree, all of a BCube that have certain digits and whole
/// rings of a Torus are a smaller topology of that kind; any others are a part of the whole. Rates, overrides
/// and devices come along; a NIC whose level has one server left goes. Servers of a BCube or Torus relay only
/// where they did, those of a part never.
///
/// Cost     the servers named, and those of the file.
/// Errors   kInvalidArgument: the file names no servers, or not this one. kUnsupported: a link between
///          switches is not as the others, and which of them are left cannot be told.
Result<TopologyFile> restrict_to(const TopologyFile& file, const JobHosts& hosts);

}  // namespace hips::topology
