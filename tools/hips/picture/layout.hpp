#pragma once

#include <string>
#include <vector>

#include <hips/topology.hpp>

namespace hips::picture {

inline constexpr double kBoxWidth = 76, kBoxHeight = 30;  ///< of a server or switch
inline constexpr double kTitleHeight = 40;                ///< free above the picture

/// The centre of a box.
struct Point {
  double x = 0, y = 0;
};

/// Where everything stands in a picture of a wiring.
struct Layout {
  std::vector<Point> at;           ///< by node
  std::vector<std::string> paths;  ///< by link: an SVG path from box to box
  double width = 0, height = 0;
};

/// Servers in a row, switches in rows above them by tier (tiers.hpp), the levels of a BCube above and below
/// in turn. A BCube of two levels is a grid instead, with a level's switches beside its rows and above its
/// columns; many servers with one NIC stand in columns below their switches, and those of a rack of rails in
/// rows beside its switches; a Torus or mesh of one or two dimensions is the grid that it is, and one of more
/// a ring.
///
/// Shapes   `graph` is topology.graph().
Layout layout_of(const Topology& topology, const Graph& graph);

}  // namespace hips::picture
