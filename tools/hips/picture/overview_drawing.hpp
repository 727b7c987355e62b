#pragma once

#include "tools/hips/picture/drawing.hpp"
#include "topology/formats/topology_file.hpp"

namespace hips::picture {

/// Is a topology drawn as an overview: a graph, one whose file has the cables, or one that is too large for every server to be
/// drawn?
bool needs_overview(const topology::TopologyFile& file);

/// Draws a topology in tiers by distance from the servers. Of a large one, boxes stand for several servers or switches, with their
/// count (overview.hpp). Names and cables are those of the file, if it has them.
///
/// Shapes   the width is at most kMostWidth.
/// Cost     n log n in the cables.
/// Errors   kUnsupported: more than kMostCounted servers and switches (drawable.hpp).
Result<Drawing> draw_overview(const topology::TopologyFile& file);

}  // namespace hips::picture
