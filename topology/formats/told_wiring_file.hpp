#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "topology/formats/file_values.hpp"

namespace hips::topology {

/// The most cables between two switches.
inline constexpr std::int64_t kMostParallelCables = 1024;

/// Reads `names` of the `switches` of a file, "" for places of the shape that have no switch; empty if it has none.
///
/// Errors   kInvalidArgument: a name that occurs twice.
Result<std::vector<std::string>> read_switch_names(const FileValues& values, const YamlNode& switches);

/// Reads `assumed` of the `switches` of a file: those of `names` that are assumed.
///
/// Errors   kInvalidArgument: none of `names`.
Result<void> read_assumed_switches(const FileValues& values, const YamlNode& switches,
                                   const std::vector<std::string>& names, ToldWiring& told);

/// Rate, state and cables of a link.
struct LinkState {
  double bandwidth_bytes_per_s = 0;
  bool up = true;
  std::optional<std::vector<double>> cables{};  ///< as ToldWiring::cables; none: not given
};

/// Reads `rate`, `state` and `cables` of a link, whose rate is `usual` if the file names none.
///
/// Shapes   cables: 2, so many of equal rates; or cables: [100Gb, 40Gb, down], whose sum is the rate.
/// Errors   kInvalidArgument: no such state, rates beside those of a list of cables.
Result<LinkState> read_link_state(const FileValues& values, const YamlNode& link, double usual);

}  // namespace hips::topology
