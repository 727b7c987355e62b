#include "topology/link_rates.hpp"

#include <algorithm>
#include <cstdio>

#include "lib/base/result.hpp"
#include "topology/cables.hpp"

namespace hips::topology {
namespace {

/// The tier of a cable between two switches, and the switch or pod below it.
std::pair<std::size_t, std::size_t> place_of(const Topology& topology, const LinkOverride& link) {
  unsigned long a = 0, b = 0;
  if (std::sscanf(link.lower.c_str(), "leaf %lu", &a) == 1) return {0, a};
  const auto half = static_cast<unsigned long>(topology.levels.back().radix / 2);
  if (std::sscanf(link.lower.c_str(), "pod %lu edge %lu", &a, &b) == 2) return {0, a * half + b};
  if (std::sscanf(link.lower.c_str(), "pod %lu aggregation", &a) == 1) return {1, a};
  throw Error(Status::error(Code::kInternal,
                            "topology: a link between switches that belongs to no tier: " + link.lower));
}

}  // namespace

LinkRates::LinkRates(const Topology& topology, std::span<const Tier> tiers)
    : rails_(rail_bandwidths(topology)) {
  for (const Tier& tier : tiers) tiers_.push_back(tier.bandwidth_bytes_per_s);
  for (const LinkOverride& link : topology.overrides) add(topology, link);
  if (topology.wiring.value != nullptr) add_graph(*topology.wiring.value);
}

void LinkRates::add_graph(const GraphWiring& wiring) {
  for (const GraphLink& link : wiring.graph.links)
    cables_.push_back(link.up ? link.bandwidth_bytes_per_s : 0);
  for (std::int64_t server = 0; server < wiring.num_servers; ++server) {
    for (Rail rail = 0; rail < wiring.num_rails; ++rail) {
      const std::int64_t cable = wiring.cable[wiring.nic(server, rail)];
      overridden_nics_[{server, rail}] = cable < 0 ? 0 : cables_[static_cast<std::size_t>(cable)];
    }
  }
}

void LinkRates::add(const Topology& topology, const LinkOverride& link) {
  const double rate = link.up ? link.bandwidth_bytes_per_s : 0;
  if (link.server >= 0) {
    // If both ends of a cable have overrides, the slower rate holds.
    const NicEnd named{link.server, link.rail};
    for (const NicEnd& end : {named, other_end(topology, link.server, link.rail).value_or(named)}) {
      double& known = overridden_nics_.try_emplace(end, rate).first->second;
      known = std::min(known, rate);
    }
    return;
  }
  if (tiers_.empty()) return;
  const auto place = place_of(topology, link);
  // The cables of a tier that lead to its level have its rate.
  const std::size_t above =
      topology.levels.size() > tiers_.size() ? topology.levels.size() - tiers_.size() : 0;
  const std::size_t level = std::min(above + place.first, topology.levels.size() - 1);
  lost_[place] += topology.levels[level].bandwidth_bytes_per_s - rate;
}

double LinkRates::nic(std::int64_t server, Rail rail) const {
  if (!overridden_nics_.empty()) {
    if (const auto found = overridden_nics_.find({server, rail}); found != overridden_nics_.end())
      return found->second;
  }
  return rails_[static_cast<std::size_t>(rail)];
}

double LinkRates::tier(std::size_t tier, std::size_t index) const {
  if (!cables_.empty()) return cables_[index];
  double rate = tiers_[tier];
  if (!lost_.empty()) {
    if (const auto lost = lost_.find({tier, index}); lost != lost_.end()) rate -= lost->second;
  }
  return std::max(rate, 0.0);
}

}  // namespace hips::topology
