#include "lib/plan/steps/peer_link.hpp"

#include <cstdint>

#include "topology/walk.hpp"

namespace hips::plan {

PeerLink routed_link(const Topology& topology, Rank rank, Rank peer, std::int64_t turn) {
  const Rail wanted = nics_lead_everywhere(topology) ? static_cast<Rail>(turn % topology.num_rails) : kNoRail;
  PeerLink link;
  link.peer = peer;
  bool first = true;
  topology::walk(topology, rank, peer, wanted, [&](const Hop& hop) {
    if (first) link.out = hop.out;
    first = false;
  });
  topology::walk(topology, peer, rank, wanted, [&](const Hop& hop) { link.in = hop.in; });
  return link;
}

bool nics_lead_everywhere(const Topology& topology) {
  return !topology.servers_relay && topology.wiring.value == nullptr && topology.num_rails > 0;
}

bool all_are_neighbours(const Topology& topology) {
  if (!topology.servers_relay) return true;
  if (topology.wiring.value != nullptr) return topology.wiring.value->diameter_hops <= 1;
  std::int32_t levels_between_servers = 0;
  bool one_hop = true;
  for (const Level& level : topology.levels) {
    if (level.kind == LevelKind::kNode || level.radix == 1) continue;
    ++levels_between_servers;
    one_hop = one_hop && (level.kind != LevelKind::kRing || level.radix <= 3) &&
              (level.kind != LevelKind::kLine || level.radix <= 2);
  }
  return levels_between_servers <= 1 && one_hop;
}

}  // namespace hips::plan
