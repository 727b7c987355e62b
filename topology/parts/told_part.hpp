#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "topology/formats/topology_file.hpp"

namespace hips::topology {

/// What a part has of the whole, by numbers of the whole.
struct PartOrigin {
  std::span<const std::int64_t> servers{};  ///< by server of the part
  std::vector<std::size_t> levels{};        ///< by network level of the part; none of a graph
  std::map<Rail, Rail> new_rail{};          ///< the NIC of the part for each one that is kept
};

/// What the description of the whole tells of the switches and cables that a part keeps. In a smaller tree with fewer switches above
/// than the whole, these are assumed: which of those of the whole they stand for is not known. Switches above no server of the part
/// have no name.
///
/// Cost     linear in the cables of the whole, but for sorting; constant where its description tells none.
ToldWiring told_of_part(const TopologyFile& whole, const Topology& part, const PartOrigin& origin);

}  // namespace hips::topology
