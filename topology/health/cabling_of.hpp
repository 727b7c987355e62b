#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>

#include "topology/cabling/cabling.hpp"
#include "topology/formats/topology_file.hpp"

namespace hips::topology {

/// Ports of servers whose file names no devices begin so; the number of the NIC follows.
inline constexpr std::string_view kNicNumber = "NIC ";

/// The cables of a topology: those that its file lists, of its servers and the switches above them; else all that the topology has, with the
/// names of its servers, switches and devices. What is assumed is left out.
///
/// Errors   (thrown) kUnsupported: more cables than Topology::graph() makes.
Cabling cabling_of(const TopologyFile& file);

/// The same with what is assumed, marked so. Nodes are in the order of Topology::graph(), without the places of the shape that have no
/// switch.
Cabling cabling_with_assumed(const TopologyFile& file);

/// The network levels of whose cables no rate is told.
std::set<std::size_t> levels_at_assumed_rates(const TopologyFile& file);

/// A leaf switch and its servers alone, with the other switches to which every one of these has a cable.
Cabling cabling_of_leaf(const Cabling& cabling, std::size_t leaf);

}  // namespace hips::topology
