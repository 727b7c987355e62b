#pragma once

#include <string>

#include "topology/formats/topology_file.hpp"

namespace hips::picture {

/// A topology as a self-contained SVG picture: with every server (layout.hpp), or as an overview with counts if that is too wide to
/// read (overview_drawing.hpp). Colours follow the reader's light or dark scheme. Slow cables and cables that are down are
/// highlighted and in a legend, with their rate or state as a tooltip.
///
/// Shapes   the width is at most kMostWidth.
/// Cost     n log n in the cables.
/// Errors   kUnsupported: more than kMostCounted servers and switches (drawable.hpp).
Result<std::string> topology_svg(const topology::TopologyFile& file);

}  // namespace hips::picture
