#include "topology/cabling/simgrid/simgrid_units.hpp"

#include <array>
#include <charconv>
#include <utility>

#include "topology/cabling/text_lines.hpp"

namespace hips::topology {
namespace {

/// A number, and the unit behind it.
std::optional<std::pair<double, std::string_view>> simgrid_quantity(std::string_view text) {
  text = without_blanks(text);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !(number >= 0)) return std::nullopt;
  return std::pair(number, without_blanks(text.substr(static_cast<std::size_t>(end - text.data()))));
}

}  // namespace

std::optional<double> simgrid_bandwidth(std::string_view text) {
  const auto read = simgrid_quantity(text);
  if (!read) return std::nullopt;
  auto [value, unit] = *read;
  if (unit.ends_with("Bps") || unit.ends_with("bps")) {
    if (unit[unit.size() - 3] == 'b') value /= 8;
    unit.remove_suffix(3);
  } else if (!unit.empty()) {
    return std::nullopt;
  }
  constexpr std::string_view kPrefixes = "kMGT";
  constexpr std::array<double, 4> kDecimal = {1e3, 1e6, 1e9, 1e12};
  constexpr std::array<double, 4> kBinary = {0x1p10, 0x1p20, 0x1p30, 0x1p40};
  if (!unit.empty()) {
    const std::size_t prefix = kPrefixes.find(unit.front() == 'K' ? 'k' : unit.front());
    if (prefix == std::string_view::npos || (unit.size() > 1 && unit.substr(1) != "i")) return std::nullopt;
    value *= unit.size() > 1 ? kBinary[prefix] : kDecimal[prefix];
  }
  if (value < 1e6 / 8 || value > 1e14 / 8) return std::nullopt;
  return value;
}

std::optional<double> simgrid_latency_ns(std::string_view text) {
  const auto read = simgrid_quantity(text);
  if (!read) return std::nullopt;
  constexpr std::array<std::pair<std::string_view, double>, 6> kUnits = {
      {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}, {"ps", 1e-3}}};
  for (const auto& [unit, ns] : kUnits) {
    if (unit != read->second) continue;
    const double value = read->first * ns;
    return value <= 1e10 ? std::optional(value) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace hips::topology
