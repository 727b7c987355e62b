#include "topology/cabling/ib_rate.hpp"

#include <array>

namespace hips::topology {
namespace {

struct Speed {
  std::string_view name;
  double gbit_per_s;  ///< of data, one lane
};

/// Signalling rates of 2.5, 5 and 10 Gb/s have 8 data bits of 10, FDR's 14.0625 Gb/s has 64 of 66.
constexpr std::array<Speed, 9> kSpeeds = {{{"SDR", 2},
                                           {"DDR", 4},
                                           {"QDR", 8},
                                           {"FDR10", 10},
                                           {"FDR", 14.0625 * 64 / 66},
                                           {"EDR", 25},
                                           {"HDR", 50},
                                           {"NDR", 100},
                                           {"XDR", 200}}};

struct Width {
  std::string_view name;
  int lanes;
};
constexpr std::array<Width, 5> kWidths = {{{"1x", 1}, {"2x", 2}, {"4x", 4}, {"8x", 8}, {"12x", 12}}};

}  // namespace

double ib_rate(std::string_view width, std::string_view speed) {
  int lanes = 0;
  for (const Width& known : kWidths) {
    if (known.name == width) lanes = known.lanes;
  }
  for (const Speed& known : kSpeeds) {
    if (known.name == speed) return lanes * known.gbit_per_s * 1e9 / 8;
  }
  return 0;
}

double ib_rate(std::string_view word) {
  const std::size_t x = word.find('x');
  if (x == std::string_view::npos) return 0;
  return ib_rate(word.substr(0, x + 1), word.substr(x + 1));
}

}  // namespace hips::topology
