#pragma once

#include <cstddef>
#include <string>

namespace hips::picture {

/// What a legend says of the cables of a picture.
struct LegendCounts {
  std::size_t cables = 0, slow = 0, down = 0;
  bool assumed = false;                ///< there are ways whose cables the file does not tell
  std::string first_slow, first_down;  ///< "leaf3 -- n11 at 25Gb"
};

inline constexpr double kLegendHeight = 26;

/// A line of SVG elements with the top at `y`: how usual cables look, slow ones and those that are down, if there are any. Its texts
/// are cut to the width of the picture.
std::string legend(const LegendCounts& counts, double y, double width);

}  // namespace hips::picture
