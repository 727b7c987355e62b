#include "topology/tiers.hpp"

namespace hips::topology {

std::vector<Tier> tiers(const Topology& topology) {
  if (topology.family == Family::kLeafSpine) {
    const Level& level = topology.levels.back();
    const std::int64_t leaves = level.radix;
    // All other switches are spines, and each leaf has one cable to each of them.
    const auto uplinks = static_cast<double>(topology.num_switches - leaves);
    return {{"leaf switches", "leaf switch", topology.num_whole_servers() / leaves, leaves,
             uplinks * level.bandwidth_bytes_per_s}};
  }
  if (topology.family == Family::kGraph) return {{"cables", "cable", 0, topology.num_links, 0}};
  if (topology.family != Family::kFatTree) return {};
  // The core level joins k pods, and k determines the rest: with k of 2 there are no lower levels.
  const Level& core = topology.levels.back();
  const std::int64_t k = core.radix;
  const Level& pod = k == 2 ? core : topology.levels[topology.levels.size() - 2];
  const auto tier = [&](const char* name, const char* one, std::int64_t below, const Level& level) {
    // There are as many cables upwards as servers below, with the rate of the level that they lead to.
    return Tier{name, one, below, topology.num_whole_servers() / below,
                static_cast<double>(below) * level.bandwidth_bytes_per_s};
  };
  return {tier("edge switches", "edge switch", k / 2, pod), tier("pods", "pod", k * k / 4, core)};
}

std::vector<double> rail_bandwidths(const Topology& topology) {
  std::vector<double> bandwidths(static_cast<std::size_t>(topology.num_rails), kDefaultBandwidthBytesPerS);
  // A NIC that serves several tiers has the rate of the lowest level; the others have that of their cables.
  for (std::size_t l = topology.levels.size(); l-- > 0;) {
    for (const Rail rail : topology.levels[l].rails)
      bandwidths[static_cast<std::size_t>(rail)] = topology.levels[l].bandwidth_bytes_per_s;
  }
  return bandwidths;
}

}  // namespace hips::topology
