#pragma once

#include <string_view>

#include "lib/base/result.hpp"
#include "topology/cabling/cabling.hpp"

namespace hips::topology {

/// Is the text a list of edges as the RDMA simulations with ns-3 read it?
bool is_ns3_edges(std::string_view text);

/// Reads it: NODES SWITCHES LINKS, the numbers of the switches, then lines of FROM TO RATE DELAY ERROR. A node is called by its
/// number, and its ports are numbered from 1 in the order of the links, as the simulator does. Lines behind the declared number
/// of links are ignored with a note, as the simulator ignores them.
///
/// Units    as written: "100Gbps", "1000ns".
/// Cost     linear in the text and in the declared number of nodes, at most kMostCabledNodes.
/// Errors   kInvalidArgument: `name` of the file, line, the value seen and what would be right.
/// Source   the topology files of the simulator of HPCC (Li et al. 2019, doi:10.1145/3341302.3342085).
Result<Cabling> read_ns3_edges(std::string_view name, std::string_view text);

}  // namespace hips::topology
