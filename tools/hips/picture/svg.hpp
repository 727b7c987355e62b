#pragma once

#include <string>

#include "topology/formats/topology_file.hpp"

namespace hips::picture {

/// A topology as a self-contained SVG picture (layout.hpp). Colours follow the reader's light or dark scheme.
/// Slow links and links that are down are highlighted, with their rate or state as a tooltip.
///
/// Cost     linear in the cables.
/// Errors   kUnsupported: more than kMostDrawn servers and switches (drawable.hpp).
Result<std::string> topology_svg(const topology::TopologyFile& file);

}  // namespace hips::picture
