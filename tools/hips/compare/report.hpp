#pragma once

#include <span>
#include <string>

#include "tools/hips/compare/plan_cost.hpp"

namespace hips::compare {

/// The tables of one topology: its plans, and their times for each size. An asterisk marks the best of a
/// size.
std::string report_text(const Comparison& comparison);

/// The legend of the tables: the model, and the meaning of "of bound". Printed once, at the end.
std::string legend_text(std::span<const Comparison> comparisons);

/// All topologies in one JSON object; the footer of `hips compare --help` documents its keys.
std::string report_json(std::span<const Comparison> comparisons);

/// Three digits: "1.20 us", "830 us", "5.36 ms", "10.7 s".
std::string duration_text(double seconds);

}  // namespace hips::compare
