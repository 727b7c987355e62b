#include "topology/clusters/level_rates.hpp"

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "topology/cabling/cabling.hpp"
#include "topology/formats/topology_file.hpp"
#include "topology/levels.hpp"

namespace hips::topology {

Result<void> give_level_rates(ClusterTopology& cluster, std::string_view name,
                              std::span<const double> tier_rates) {
  Topology& topology = cluster.topology;
  const std::size_t num_levels = network_levels(topology).size();
  const std::span<Level> levels = std::span(topology.levels).last(num_levels);
  bool is_given = false;
  for (std::size_t level = 0; level < num_levels; ++level)
    if (level >= tier_rates.size() || !(tier_rates[level] > 0)) cluster.told.assumed_rates.insert(level);
  for (std::size_t tier = 0; tier < tier_rates.size(); ++tier) {
    if (!(tier_rates[tier] > 0)) continue;
    if (tier >= num_levels || is_of_cables(levels[tier]))
      return fail(Code::kInvalidArgument, fmt::format("{}: --rate {}: {} has no such cables", name,
                                                      kCableTiers[tier], topology.name));
    levels[tier].bandwidth_bytes_per_s = tier_rates[tier];
    is_given = true;
  }
  if (!is_given) return {};
  TopologyFile file;
  file.topology = topology;
  file.server_names = cluster.nodes;
  auto spec = spec_with_rates(name, file);
  if (!spec) return fail(spec.error());
  topology.spec = *std::move(spec);
  if (cluster.cabling.value && tier_rates[0] > 0) {
    Cabling told = *cluster.cabling.value;
    for (Cable& cable : told.cables) cable.bandwidth_bytes_per_s = tier_rates[0];
    cluster.cabling.value = std::make_shared<const Cabling>(std::move(told));
  }
  return {};
}

}  // namespace hips::topology
