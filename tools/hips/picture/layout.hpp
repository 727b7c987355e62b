#pragma once

#include <string>
#include <vector>

#include <hips/topology.hpp>

namespace hips::picture {

inline constexpr double kBoxWidth = 76, kBoxHeight = 30;  ///< of a server or switch
inline constexpr double kTitleHeight = 40;                ///< free space above the picture

/// The centre of a box.
struct Point {
  double x = 0, y = 0;
};

/// The positions of boxes and cables in a picture.
struct PictureLayout {
  std::vector<Point> at;           ///< by node
  std::vector<std::string> paths;  ///< by link: an SVG path from box to box
  double width = 0, height = 0;
};

/// Computes the layout of a picture. By default servers are in a row, and switches in rows above them by tier
/// (tiers.hpp); the levels of a BCube alternate above and below. A BCube of two levels is a grid, with the
/// switches beside its rows and above its columns. Many servers with one NIC are in columns below their
/// switches, and those of a rail rack in rows beside its switches. A torus or mesh of one or two dimensions
/// is a grid, others a ring. A graph is drawn as a tree, by distance from its servers, and without switches as a ring.
///
/// Shapes   `graph` is topology.graph().
PictureLayout layout_of(const Topology& topology, const Graph& graph);

}  // namespace hips::picture
