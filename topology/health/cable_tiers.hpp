#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "topology/cabling/cabling.hpp"

namespace hips::topology {

/// The distance of each node from the servers: 0 of a server, 1 of a leaf switch, 2 of a spine switch, ...
struct CableTiers {
  std::vector<std::size_t> of;  ///< by node of the cabling; SIZE_MAX: no cables lead to servers
  std::size_t highest = 0;      ///< of the switches; 0: there are none that join servers
  bool has_more =
      false;  ///< leaves are joined by switches that the file does not tell, or by cables between them

  /// The word for `count` switches of a tier: "leaf", "leaves", "spines"; "switch" where there is one tier.
  [[nodiscard]] std::string word(std::size_t tier, std::size_t count) const;
};

/// Requires that the kinds of all nodes are known. Cables that are down count.
///
/// Cost     linear in nodes and cables.
CableTiers cable_tiers(const Cabling& cabling);

/// By node: its cables.
std::vector<std::vector<std::size_t>> cables_by_node(const Cabling& cabling);

/// The other end of a cable of a node.
inline std::size_t node_across(const Cable& cable, std::size_t node) {
  return cable.a.node == node ? cable.b.node : cable.a.node;
}

/// A cable with its ports, the end farther from the servers first: "leaf3 port 12 -- n11 hca0".
std::string cable_text(const Cabling& cabling, const CableTiers& tiers, std::size_t cable);
/// Without ports, the other end first: "n11 -- leaf3".
std::string short_cable_text(const Cabling& cabling, const CableTiers& tiers, std::size_t cable);

}  // namespace hips::topology
