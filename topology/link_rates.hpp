#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <hips/topology.hpp>

#include "topology/tiers.hpp"

namespace hips::topology {

/// The rate of every NIC and of the cables above every edge switch and pod, including overrides, in bytes/s
/// in one direction. A link that is down has rate 0.
///
/// Cost     memory: the rails, and the overrides.
class LinkRates {
 public:
  LinkRates(const Topology& topology, std::span<const Tier> tiers);

  [[nodiscard]] double nic(std::int64_t server, Rail rail) const;
  /// The rate of all cables above switch or pod `index` of a tier together: traffic spreads over them.
  [[nodiscard]] double tier(std::size_t tier, std::size_t index) const;

 private:
  void add(const Topology& topology, const LinkOverride& link);
  void add_graph(const GraphWiring& wiring);

  std::vector<double> rails_;
  std::vector<double> tiers_;
  std::vector<double> cables_;  ///< of a graph
  std::map<std::pair<std::int64_t, Rail>, double> overridden_nics_;
  std::map<std::pair<std::size_t, std::size_t>, double> lost_;  ///< by tier, and switch or pod
};

}  // namespace hips::topology
