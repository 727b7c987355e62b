#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "topology/formats/topology_file.hpp"

namespace hips::topology {

/// The hosts of a job in the given order, and the number of ranks on each.
struct JobHosts {
  std::vector<std::string> names;   ///< unique
  std::int32_t ranks_per_host = 1;  ///< the same on all
};

/// The prefix of the spec of a part that no spec describes. Such a spec cannot be read; only a file describes
/// the part.
inline constexpr std::string_view kPartOf = "part-of:";

/// Makes the topology of some servers of a larger one, by their names, in the order of the larger one.
///
/// Servers of a switch, an equal number of servers of each switch of a tree, all servers of a BCube with
/// certain digits, and whole rings of a Torus are a smaller topology of the same kind. Any others are a part
/// of the whole. Rates, overrides, devices and what is told of switches (told_part.hpp) are kept; a NIC whose level has one server left is dropped.
/// Servers of a BCube or Torus relay if they did before, those of a part never.
///
/// Where servers relay and those of the job are not connected without others, a few others relay for them: the result is a graph
/// in which these are switches (relays.hpp), and its only note names them. If they cannot connect the job either, the result is
/// the part, for which there is no plan.
///
/// Cost     linear in the servers of the job and of the file; if the job is not connected, n log n in the cables of the whole.
/// Errors   kInvalidArgument: the file names no servers, or not this one. kUnsupported: a link between
///          switches has an override, and it is unknown whether the job uses this link; or the job is not connected, and the whole
///          has more cables than Topology::graph() makes.
Result<TopologyFile> restrict_to(const TopologyFile& file, const JobHosts& hosts);

}  // namespace hips::topology
