#include "tools/hips/health/counts.hpp"

#include "tools/hips/health/predicted.hpp"
#include "topology/health/cabling_of.hpp"

namespace hips::health {

WiringCounts count_wiring(const topology::TopologyFile& file) {
  WiringCounts counts;
  const std::int64_t assumed = std::ssize(file.told.assumed_switches);
  const std::int64_t replaced = std::ssize(file.told.replaced_switches);
  if (file.topology.num_links > kMostCables)
    return {.switches = file.topology.num_switches - assumed + replaced,
            .cables = file.topology.num_links,
            .assumed_switches = assumed,
            .assumed_rates = file.told.assumed_rates};
  const topology::Cabling cabling = topology::cabling_with_assumed(file);
  counts.switches = replaced;
  for (const topology::CabledNode& node : cabling.nodes)
    if (node.kind == topology::CabledNode::Kind::kSwitch)
      ++(node.is_assumed ? counts.assumed_switches : counts.switches);
  for (const topology::Cable& cable : cabling.cables) {
    const bool is_assumed = cabling.nodes[cable.a.node].is_assumed || cabling.nodes[cable.b.node].is_assumed;
    ++(is_assumed ? counts.assumed_cables : counts.cables);
  }
  counts.assumed_rates = topology::levels_at_assumed_rates(file);
  return counts;
}

}  // namespace hips::health
