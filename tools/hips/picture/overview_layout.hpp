#pragma once

#include <vector>

#include "tools/hips/picture/layout.hpp"
#include "tools/hips/picture/overview.hpp"

namespace hips::picture {

/// The positions of the boxes of an overview: a row for each tier, servers lowest; a tier of more than kMostInRow boxes has several
/// rows. Boxes are ordered so that few cables cross.
struct OverviewLayout {
  std::vector<Point> at;  ///< by box
  double box_width = 0;
  double width = 0, height = 0;
};

inline constexpr double kOverviewBoxHeight = 34;

/// Shapes   the width is from 520 to kMostWidth.
OverviewLayout layout_of(const Overview& overview);

}  // namespace hips::picture
