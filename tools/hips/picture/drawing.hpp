#pragma once

#include <string>
#include <string_view>

#include "topology/formats/topology_file.hpp"

namespace hips::picture {

/// A topology as SVG elements, for a picture or a part of a page.
///
/// A cable is `<path class="cable" data-ends="3:0 5:1">`, with server and NIC of each end at a server. A
/// server is
/// `<g class="node" data-server="3">`.
struct Drawing {
  double width = 0, height = 0;
  std::string elements;
};

/// The CSS rules of the elements, light and dark; they apply inside `.wiring` only.
extern const std::string_view kDrawingStyle;

/// Draws a topology.
///
/// Errors   kUnsupported: too large (drawable.hpp).
Result<Drawing> draw(const topology::TopologyFile& file);

/// Text escaped for XML and HTML, without control characters.
std::string xml_text(std::string_view text);

}  // namespace hips::picture
