#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "topology/formats/cluster_topology.hpp"
#include "topology/wiring/layout.hpp"

namespace hips::topology {

/// A family that a wiring is, or is a part of.
struct FamilyFit {
  ClusterTopology cluster;
  std::int64_t missing =
      0;  ///< cables that the family has and the wiring does not, and servers without a place in use
  std::vector<std::int64_t> seen{};  ///< FamilyLayout::seen, by node of cluster.topology.graph()
};

/// Compares a wiring with a layout, cable by cable. Cables that are missing, down or of another rate than most of their level
/// become overrides, places without servers a part; notes say so.
///
/// Cost     linear in the cables.
/// Returns  nothing if the wiring has a cable that the family has not, or too few of its cables.
std::optional<FamilyFit> fit(std::string_view name, const ServerWiring& wiring, const FamilyLayout& layout);

}  // namespace hips::topology
