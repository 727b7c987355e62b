#include "topology/clusters/level_rates.hpp"

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "topology/cabling/cabling.hpp"
#include "topology/levels.hpp"

namespace hips::topology {

Result<TopologyFile> with_level_rates(TopologyFile file, std::string_view name,
                                      std::span<const double> tier_rates) {
  Topology& topology = file.topology;
  const std::size_t num_levels = network_levels(topology).size();
  const std::span<Level> levels = std::span(topology.levels).last(num_levels);
  for (std::size_t tier = 0; tier < tier_rates.size(); ++tier) {
    if (!(tier_rates[tier] > 0)) continue;
    if (tier >= num_levels || is_of_cables(levels[tier]))
      return fail(Code::kInvalidArgument, fmt::format("{}: --rate {}: {} has no such cables", name,
                                                      kCableTiers[tier], topology.name));
    levels[tier].bandwidth_bytes_per_s = tier_rates[tier];
  }
  auto spec = spec_with_rates(name, file);
  if (!spec) return fail(spec.error());
  topology.spec = *std::move(spec);
  if (file.cabling.value && !tier_rates.empty() && tier_rates[0] > 0) {
    Cabling told = *file.cabling.value;
    for (Cable& cable : told.cables) cable.bandwidth_bytes_per_s = tier_rates[0];
    file.cabling.value = std::make_shared<const Cabling>(std::move(told));
  }
  return file;
}

}  // namespace hips::topology
