#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tools/hips-ps-perf/measure.hpp"

namespace hips::ps_perf {

using Clock = std::chrono::steady_clock;

inline double us_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

double median(std::vector<double> values);

/// Figures of each round, by line of the report, in the order in which lines were first measured.
class Measurements {
 public:
  /// Operation, rows, keys, row length, outstanding calls.
  using Kind = std::tuple<std::string, std::string, std::size_t, std::size_t, std::size_t>;
  void add(const Kind& kind, double us_per_call, double keys_per_s);
  /// Medians of the rounds.
  [[nodiscard]] std::vector<Line> take(std::optional<double> ping_pong_us) const;

 private:
  struct Rounds {
    std::vector<double> us_per_call, keys_per_s;
  };
  std::vector<Kind> order_;
  std::map<Kind, Rounds> rounds_;
};

}  // namespace hips::ps_perf
