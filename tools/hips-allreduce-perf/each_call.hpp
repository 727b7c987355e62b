#pragma once

#include <vector>

namespace hips::perf {

/// Calls that were timed one by one, each after a barrier and by its slowest rank.
struct EachCall {
  double min_us = 0, median_us = 0, p90_us = 0, p99_us = 0, max_us = 0;
  double deviation_percent = 0;  ///< standard deviation by mean

  /// Percentiles are nearest ranks. Needs a time.
  static EachCall of(std::vector<double> times_us);
};

}  // namespace hips::perf
