#include "topology/wiring/given_rates.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace hips::topology {

std::vector<std::size_t> tiers_of_cables(const Cabling& cabling) {
  using Kind = CabledNode::Kind;
  std::vector<std::vector<std::size_t>> near(cabling.nodes.size());
  for (const Cable& cable : cabling.cables) {
    near[cable.a.node].push_back(cable.b.node);
    near[cable.b.node].push_back(cable.a.node);
  }
  // Of nodes: 0 of servers, 1 of their switches.
  std::vector<std::size_t> steps(cabling.nodes.size(), SIZE_MAX), front;
  for (std::size_t node = 0; node < steps.size(); ++node) {
    if (cabling.nodes[node].kind != Kind::kServer) continue;
    steps[node] = 0;
    front.push_back(node);
  }
  for (std::size_t step = 1; !front.empty(); ++step) {
    std::vector<std::size_t> next;
    for (const std::size_t node : front) {
      for (const std::size_t other : near[node]) {
        if (steps[other] != SIZE_MAX) continue;
        steps[other] = step;
        next.push_back(other);
      }
    }
    front = std::move(next);
  }
  std::vector<std::size_t> tiers;
  tiers.reserve(cabling.cables.size());
  for (const Cable& cable : cabling.cables)
    tiers.push_back(std::min(steps[cable.a.node], steps[cable.b.node]));
  return tiers;
}

std::vector<std::size_t> give_rates(Cabling& cabling) {
  const std::vector<double>& rates = cabling.tier_rates;
  std::vector<std::size_t> given(rates.size(), 0);
  if (rates.empty()) return given;
  const std::vector<std::size_t> tiers = tiers_of_cables(cabling);
  for (std::size_t i = 0; i < tiers.size(); ++i) {
    Cable& cable = cabling.cables[i];
    if (tiers[i] >= rates.size() || !(rates[tiers[i]] > 0) || cable.bandwidth_bytes_per_s > 0) continue;
    cable.bandwidth_bytes_per_s = rates[tiers[i]];
    ++given[tiers[i]];
  }
  return given;
}

}  // namespace hips::topology
