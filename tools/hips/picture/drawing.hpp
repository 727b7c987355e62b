#pragma once

#include <string>
#include <string_view>

#include "topology/formats/topology_file.hpp"

namespace hips::picture {

/// A wiring as elements of SVG, for a picture of its own or a part of a page.
///
/// Every cable is `<path class="cable" data-ends="3:0 5:1">`, with the server and NIC of each end that is
/// one; every server a `<g class="node" data-server="3">`.
struct Drawing {
  double width = 0, height = 0;
  std::string elements;
};

/// The rules that the elements are drawn by, light and dark; they apply inside `.wiring` only.
extern const std::string_view kDrawingStyle;

/// Errors   kUnsupported: too large (drawable.hpp).
Result<Drawing> draw(const topology::TopologyFile& file);

/// Text as XML and HTML have it, without control characters.
std::string xml_text(std::string_view text);

}  // namespace hips::picture
