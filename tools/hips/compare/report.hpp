#pragma once

#include <span>
#include <string>

#include "tools/hips/compare/price.hpp"

namespace hips::compare {

/// The tables of one topology: what its plans are, and how long each takes for which size; the best of a size
/// has an asterisk.
std::string report_text(const Comparison& comparison);

/// What report_text() cannot say for itself: the model, what "of bound" means. Printed once, at the end.
std::string legend_text(std::span<const Comparison> comparisons);

/// All topologies in one JSON object; the footer of `hips compare --help` documents its keys.
std::string report_json(std::span<const Comparison> comparisons);

/// "1.2 us", "830 us", "5.36 ms", "10.7 s": three digits.
std::string duration_text(double seconds);

}  // namespace hips::compare
