#include "topology/parts/occupied.hpp"

#include <algorithm>
#include <functional>
#include <vector>

#include "topology/parts/components.hpp"
#include "topology/parts/restrict.hpp"

namespace hips::topology {

std::optional<std::string> occupied_part(const Topology& topology, std::span<const Rank> ranks) {
  if (ranks.empty() || std::ranges::adjacent_find(ranks, std::greater_equal{}) != ranks.end())
    return std::nullopt;
  JobHosts hosts;
  std::int32_t on_server = 0;
  Rank server = -1;
  for (const Rank rank : ranks) {
    if (rank / topology.ranks_per_server == server) {
      ++on_server;
      continue;
    }
    if (hosts.names.size() == 1) hosts.ranks_per_host = on_server;
    if (!hosts.names.empty() && on_server != hosts.ranks_per_host) return std::nullopt;
    server = rank / topology.ranks_per_server;
    hosts.names.push_back(std::to_string(server));
    on_server = 1;
  }
  if (hosts.names.size() == 1 || on_server != hosts.ranks_per_host) return std::nullopt;

  // Without ranks: `hosts` has their number per server.
  TopologyFile file;
  file.topology = topology;
  if (topology.ranks_per_server > 1) {
    file.topology.levels.erase(file.topology.levels.begin());
    file.topology.ranks_per_server = 1;
  }
  for (Rank s = 0; s < topology.num_servers(); ++s) file.server_names.push_back(std::to_string(s));
  const auto part = restrict_to(file, hosts);
  if (!part || part->topology.spec.starts_with(kPartOf) || part->topology.relay_off ||
      num_components(part->topology) > 1)
    return std::nullopt;
  return part->topology.spec;
}

}  // namespace hips::topology
