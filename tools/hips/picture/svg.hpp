#pragma once

#include <string>

#include "topology/topology_file.hpp"

namespace hips::picture {

/// A topology as an SVG picture that stands alone: servers in a row with their names, switches in rows above
/// them by tier (the levels of BCube above and below in turn), a line for each cable; a Torus of one or two
/// dimensions as the grid that it is, of more as a ring. Colours follow the reader's light or dark scheme;
/// what is slow or down is drawn so and says why when pointed at.
///
/// Cost     the cables.
/// Errors   kUnsupported: more than kMostDrawn servers and switches (dot.hpp).
Result<std::string> topology_svg(const topology::TopologyFile& file);

}  // namespace hips::picture
