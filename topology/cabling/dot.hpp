#pragma once

#include <cstddef>
#include <string_view>

#include "lib/base/result.hpp"
#include "topology/cabling/cabling.hpp"

namespace hips::topology {

/// The most bytes of a graph.
inline constexpr std::size_t kMostDotBytes = std::size_t{16} << 20U;

/// Is the text a graph in the DOT language of Graphviz?
bool is_dot(std::string_view text);

/// Reads the edges of a graph or a digraph as cables: "leaf1":"swp1" -- "spine1":"swp2", as Cumulus and PTM write them, or as
/// `hips topo --format dot` writes them, with ports as taillabel and headlabel and names as labels.
///
/// If every node has a label of its own, labels are the names. Nodes tell by function or role, as "leaf", "spine" or "host",
/// whether they are switches; in what HiPS writes by their shape. An edge may have a rate, as label, speed, rate or bandwidth,
/// and be "down" by its label. Other attributes of nodes and edges are ignored with one note.
///
/// Cost     linear in the text, on average.
/// Errors   kInvalidArgument: `name` of the file, line, the value seen and what would be right.
/// Source   graphviz.org/doc/info/lang.html; the prescriptive topology manager of Cumulus Linux.
Result<Cabling> read_dot(std::string_view name, std::string_view text);

}  // namespace hips::topology
