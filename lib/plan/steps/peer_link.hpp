#pragma once

#include <cstdint>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

namespace hips::plan {

/// How a rank and one of its peers reach each other.
struct PeerLink {
  Rank peer = -1;
  Rail out = kNoRail;  ///< this rank's NIC on the way to the peer
  Rail in = kNoRail;   ///< this rank's NIC on the way from the peer
};

/// How two ranks reach each other on the topology's own route. Both NICs are kNoRail inside a server.
///
/// Shapes   `turn` is 0 or more. If nics_lead_everywhere(), they take turns: 0 is the topology's
///          own route. Both ranks of a message pass the same turn.
PeerLink routed_link(const Topology& topology, Rank rank, Rank peer, std::int64_t turn);

/// Does each NIC of a server lead straight to the NIC of the same number of every other server, as in a rail rack?
bool nics_lead_everywhere(const Topology& topology);

/// Is every server one hop from every other?
bool all_are_neighbours(const Topology& topology);

}  // namespace hips::plan
