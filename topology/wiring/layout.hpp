#pragma once

#include <cstdint>
#include <vector>

#include <hips/topology.hpp>

#include "topology/wiring/wiring.hpp"

namespace hips::topology {

/// Where the nodes of a wiring have their places in a family: a proposal, which fit() checks.
struct FamilyLayout {
  Topology whole;                  ///< without a part, overrides and ranks on servers
  std::vector<std::int64_t> seen;  ///< by node of whole.graph(): the node of the wiring; -1: there is none
};

/// The most cables and servers that may be missing in a BCube, torus or mesh, and the most cables in other families.
inline constexpr std::int64_t kMostMissing = 3;

/// Each of these proposes places in one kind of families; nothing if the wiring cannot be one.

/// All servers on each switch: switch and rail.
std::vector<FamilyLayout> lay_out_rack(const ServerWiring& wiring);
/// One NIC for each server, and tiers of switches: leaf-spine and Fat-Tree.
std::vector<FamilyLayout> lay_out_tree(const ServerWiring& wiring);
/// Several NICs for each server, each to a switch, and no cables between switches.
std::vector<FamilyLayout> lay_out_bcube(const ServerWiring& wiring);
/// The same by trying, for few servers: also where so much is missing that the neighbours of a switch do not tell its level.
std::vector<FamilyLayout> search_bcube(const ServerWiring& wiring);
/// No switches: torus and mesh. The first that fits.
std::vector<FamilyLayout> lay_out_grid(const ServerWiring& wiring);

}  // namespace hips::topology
