#pragma once

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
PeerLink routed_link(const Topology& topology, Rank rank, Rank peer);

/// Is every server one hop from every other?
bool all_are_neighbours(const Topology& topology);

}  // namespace hips::plan
