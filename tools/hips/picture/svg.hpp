#pragma once

#include <string>

#include "topology/formats/topology_file.hpp"

namespace hips::picture {

/// A topology as an SVG picture that stands alone (layout.hpp). Colours follow the reader's light or dark
/// scheme; what is slow or down is drawn so and says why when pointed at.
///
/// Cost     the cables.
/// Errors   kUnsupported: more than kMostDrawn servers and switches (drawable.hpp).
Result<std::string> topology_svg(const topology::TopologyFile& file);

}  // namespace hips::picture
