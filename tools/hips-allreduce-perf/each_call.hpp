#pragma once

#include <vector>

namespace hips::perf {

/// Statistics of calls that were timed one by one, each after a barrier, by the slowest rank.
struct EachCall {
  double min_us = 0, median_us = 0, p90_us = 0, p99_us = 0, max_us = 0;
  double deviation_percent = 0;  ///< standard deviation divided by mean

  /// Computes the statistics; percentiles are nearest ranks. Needs at least one time.
  static EachCall of(std::vector<double> times_us);
};

}  // namespace hips::perf
