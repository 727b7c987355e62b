#pragma once

#include <span>
#include <vector>

#include "lib/base/result.hpp"
#include "tools/discover/view.hpp"
#include "topology/cabling/lldp.hpp"
#include "topology/discover/draft.hpp"

namespace hips::discover {

/// The servers with what LLDP has told to their leaders.
std::vector<topology::LldpHost> lldp_hosts(std::span<const RankView> views,
                                           std::span<const JobServer> servers);

/// Drafts the topology from the cables that LLDP tells, if every server has heard a neighbour, and as draft_topology() does
/// otherwise. `hosts` are the servers of the observation; their neighbours' interfaces are names of NICs.
///
/// Leaves that no server joins, but between which NICs reach each other, are below as many spines as a leaf has servers, as a
/// guess: servers do not hear what is above their switches. If LLDP tells no topology, a note says why, and the subnets decide.
///
/// Cost     that of topology_of() and place().
/// Threads  pure; any thread.
/// Errors   those of draft_topology().
Result<topology::Draft> draft_with_lldp(topology::Observation seen, std::vector<topology::LldpHost> hosts);

}  // namespace hips::discover
