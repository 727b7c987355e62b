#include "topology/health/odd_cables.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "topology/most_common.hpp"

namespace hips::topology {
namespace {

using Likeness = std::tuple<std::size_t, std::size_t, std::string>;

/// The ports of a cable between servers, in either direction: those of a torus' axis are the same everywhere.
std::string both_ports(const Cable& cable) {
  const auto [first, second] = std::minmax(cable.a.port, cable.b.port);
  return first + " and " + second;
}

}  // namespace

std::vector<OddCable> odd_cables(const Cabling& cabling, const CableTiers& tiers) {
  std::map<std::string, std::size_t> ports;
  std::size_t servers = 0;
  for (const CabledNode& node : cabling.nodes) servers += node.kind == CabledNode::Kind::kServer ? 1 : 0;
  for (const Cable& cable : cabling.cables)
    for (const CableEnd* end : {&cable.a, &cable.b})
      if (tiers.of[end->node] == 0) ++ports[end->port];
  std::map<std::string, std::size_t> between_servers;
  for (const Cable& cable : cabling.cables)
    if (tiers.of[cable.a.node] == 0 && tiers.of[cable.b.node] == 0) ++between_servers[both_ports(cable)];
  const bool some_count =
      std::ranges::any_of(ports, [&](const auto& port) { return 2 * port.second >= servers; });
  const auto likeness = [&](const Cable& cable) {
    const auto [low, high] = std::minmax(tiers.of[cable.a.node], tiers.of[cable.b.node]);
    if (high == 0) {
      std::string ports_of_both = both_ports(cable);
      return Likeness(0, 0, 2 * between_servers[ports_of_both] >= servers ? std::move(ports_of_both) : "");
    }
    const CableEnd& lower = tiers.of[cable.a.node] == low ? cable.a : cable.b;
    const bool counts = low == 0 && 2 * ports[lower.port] >= servers;
    if (counts) return Likeness(low, high, lower.port);
    // Where most servers have the same names of ports, the others' are like those at the same switch.
    const std::size_t upper = tiers.of[cable.a.node] == low ? cable.b.node : cable.a.node;
    return Likeness(low, high, low == 0 && some_count ? "switch " + std::to_string(upper) : "");
  };
  std::map<Likeness, MostCommon<double>> rates;
  for (const Cable& cable : cabling.cables) rates[likeness(cable)].add(cable.bandwidth_bytes_per_s);
  std::vector<OddCable> result;
  for (std::size_t i = 0; i < cabling.cables.size(); ++i) {
    const Cable& cable = cabling.cables[i];
    const double usual = rates[likeness(cable)].value_or(0);
    if (!cable.up || cable.bandwidth_bytes_per_s != usual) result.push_back({i, usual});
  }
  return result;
}

}  // namespace hips::topology
