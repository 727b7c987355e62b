#include "tools/hips-allreduce-perf/each_call.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace hips::perf {

EachCall EachCall::of(std::vector<double> times_us) {
  std::ranges::sort(times_us);
  const auto count = static_cast<double>(times_us.size());
  const auto percentile = [&](double share) {
    return times_us[static_cast<std::size_t>(std::max(1.0, std::ceil(share * count))) - 1];
  };
  double sum = 0, squares = 0;
  for (const double time : times_us) sum += time;
  const double mean = sum / count;
  for (const double time : times_us) squares += (time - mean) * (time - mean);
  return {.min_us = times_us.front(),
          .median_us = percentile(0.5),
          .p90_us = percentile(0.9),
          .p99_us = percentile(0.99),
          .max_us = times_us.back(),
          .deviation_percent = mean > 0 ? 100 * std::sqrt(squares / count) / mean : 0};
}

}  // namespace hips::perf
