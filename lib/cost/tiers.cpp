#include "lib/cost/tiers.hpp"

namespace hips::cost {

std::vector<Tier> tiers(const Topology& topology) {
  if (topology.family == Family::kLeafSpine) {
    const Level& level = topology.levels.back();
    const std::int64_t leaves = level.radix;
    // The switches that are no leaves are spines, and each leaf has one cable to each.
    const auto uplinks = static_cast<double>(topology.num_switches - leaves);
    return {{"leaf switches", "leaf switch", topology.num_servers() / leaves, leaves,
             uplinks * level.bandwidth_bytes_per_s}};
  }
  if (topology.family != Family::kFatTree) return {};
  // The core level joins k pods, and k says the rest: the lower levels are left out where k is 2.
  const std::int64_t k = topology.levels.back().radix;
  const double nic = topology.levels.back().bandwidth_bytes_per_s;
  const auto tier = [&](const char* name, const char* one, std::int64_t below) {
    // As many cables go up as servers stand below, all of the NICs' rate.
    return Tier{name, one, below, topology.num_servers() / below, static_cast<double>(below) * nic};
  };
  return {tier("edge switches", "edge switch", k / 2), tier("pods", "pod", k * k / 4)};
}

std::vector<double> rail_bandwidths(const Topology& topology) {
  std::vector<double> bandwidths(static_cast<std::size_t>(topology.num_rails), kDefaultBandwidthBytesPerS);
  for (const Level& level : topology.levels) {
    for (const Rail rail : level.rails)
      bandwidths[static_cast<std::size_t>(rail)] = level.bandwidth_bytes_per_s;
  }
  return bandwidths;
}

}  // namespace hips::cost
