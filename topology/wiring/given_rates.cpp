#include "topology/wiring/given_rates.hpp"

#include <algorithm>

namespace hips::topology {

std::vector<std::size_t> give_rates(Cabling& cabling) {
  const std::vector<double>& rates = cabling.tier_rates;
  std::vector<std::size_t> given(rates.size(), 0);
  if (rates.empty()) return given;
  const std::vector<std::size_t> from_servers = distances_from_servers(cabling);
  for (Cable& cable : cabling.cables) {
    const std::size_t tier = std::min(from_servers[cable.a.node], from_servers[cable.b.node]);
    if (tier >= rates.size() || !(rates[tier] > 0) || cable.is_rate_told()) continue;
    cable.bandwidth_bytes_per_s = rates[tier];
    cable.is_rate_assumed = false;
    ++given[tier];
  }
  return given;
}

}  // namespace hips::topology
