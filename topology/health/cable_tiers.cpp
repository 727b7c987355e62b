#include "topology/health/cable_tiers.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>

#include <fmt/format.h>

namespace hips::topology {
namespace {

std::string end_text(const Cabling& cabling, const CableEnd& end) {
  const std::string& name = cabling.nodes[end.node].name;
  if (end.port.empty()) return name;
  const bool is_number = std::ranges::all_of(end.port, [](unsigned char c) { return std::isdigit(c) != 0; });
  return fmt::format("{} {}{}", name, is_number ? "port " : "", end.port);
}

/// Both ends, the one closer to the servers first; SIZE_MAX (not reached) is farthest.
std::pair<const CableEnd*, const CableEnd*> lower_first(const CableTiers& tiers, const Cable& cable) {
  return tiers.of[cable.b.node] < tiers.of[cable.a.node] ? std::pair(&cable.b, &cable.a)
                                                         : std::pair(&cable.a, &cable.b);
}

}  // namespace

std::string CableTiers::word(std::size_t tier, std::size_t count) const {
  if (highest <= 1 && !has_more) return count == 1 ? "switch" : "switches";
  if (tier == 1) return count == 1 ? "leaf" : "leaves";
  if (tier == 2) return count == 1 ? "spine" : "spines";
  if (tier == 3) return count == 1 ? "core switch" : "core switches";
  return fmt::format("tier-{} switch{}", tier, count == 1 ? "" : "es");
}

std::vector<std::vector<std::size_t>> cables_by_node(const Cabling& cabling) {
  std::vector<std::vector<std::size_t>> of(cabling.nodes.size());
  for (std::size_t i = 0; i < cabling.cables.size(); ++i) {
    of[cabling.cables[i].a.node].push_back(i);
    if (cabling.cables[i].b.node != cabling.cables[i].a.node) of[cabling.cables[i].b.node].push_back(i);
  }
  return of;
}

CableTiers cable_tiers(const Cabling& cabling) {
  CableTiers tiers;
  tiers.has_more = !cabling.has_uplinks;
  tiers.of = distances_from_servers(cabling);
  for (const std::size_t tier : tiers.of)
    if (tier != SIZE_MAX) tiers.highest = std::max(tiers.highest, tier);
  // Switches that are cabled to their like have tiers, too.
  for (const Cable& cable : cabling.cables) {
    const std::size_t tier = tiers.of[cable.a.node];
    if (tier != SIZE_MAX && tier > 0 && tier == tiers.of[cable.b.node]) tiers.has_more = true;
  }
  return tiers;
}

std::string cable_text(const Cabling& cabling, const CableTiers& tiers, std::size_t cable) {
  const auto [lower, upper] = lower_first(tiers, cabling.cables[cable]);
  return fmt::format("{} -- {}", end_text(cabling, *upper), end_text(cabling, *lower));
}

std::string short_cable_text(const Cabling& cabling, const CableTiers& tiers, std::size_t cable) {
  const auto [lower, upper] = lower_first(tiers, cabling.cables[cable]);
  return fmt::format("{} -- {}", cabling.nodes[lower->node].name, cabling.nodes[upper->node].name);
}

}  // namespace hips::topology
