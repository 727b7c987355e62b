#include "tools/hips-write/samples.hpp"

#include <algorithm>
#include <cmath>

namespace hips::write {
namespace {

constexpr double kMegabyte = 1048576;
constexpr double kGigabit = 1.25e8;

}  // namespace

Bandwidth bandwidth_of(const Samples& samples, std::uint64_t bytes, double ticks_per_us, bool gbits) {
  const double unit = gbits ? kGigabit : kMegabyte;
  const double size = static_cast<double>(bytes);
  const double us = static_cast<double>(samples.end - samples.begin) / ticks_per_us;
  Bandwidth row{.bytes = bytes, .count = samples.count};
  if (us > 0) {
    row.million_per_s = static_cast<double>(samples.count) / us;
    row.average = row.million_per_s * 1e6 * size / unit;
  }
  double least_ticks = 0;  // of one message
  bool any = false;
  auto first = samples.completions.begin();
  for (std::size_t i = 0; i < samples.posted.size(); ++i) {
    while (first != samples.completions.end() && first->count <= i) ++first;
    for (auto done = first; done != samples.completions.end(); ++done) {
      if (done->tick <= samples.posted[i]) continue;
      const double each =
          static_cast<double>(done->tick - samples.posted[i]) / static_cast<double>(done->count - i);
      if (!any || each < least_ticks) least_ticks = each;
      any = true;
    }
  }
  if (any) row.peak = ticks_per_us / least_ticks * 1e6 * size / unit;
  return row;
}

std::vector<double> half_round_trips(const Samples& samples, double ticks_per_unit) {
  std::vector<double> trips;
  for (std::size_t i = 1; i < samples.posted.size(); ++i)
    trips.push_back(static_cast<double>(samples.posted[i] - samples.posted[i - 1]) / ticks_per_unit / 2);
  return trips;
}

Latency latency_of(std::vector<double> trips, std::uint64_t bytes, std::uint64_t count) {
  std::sort(trips.begin(), trips.end());
  const std::size_t kept = trips.size() - static_cast<std::size_t>(kIgnoredSlowest);
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < kept; ++i) sum += trips[i];
  const double average = sum / static_cast<double>(kept);
  for (std::size_t i = 0; i < kept; ++i) squares += (average - trips[i]) * (average - trips[i]);
  const auto at = [&](double share) {
    return trips[static_cast<std::size_t>(std::ceil(static_cast<double>(kept) * share))];
  };
  return {.bytes = bytes,
          .count = count,
          .min = trips.front(),
          .max = trips[kept],
          .typical = kept % 2 == 0 ? (trips[kept / 2] + trips[kept / 2 - 1]) / 2 : trips[kept / 2],
          .average = average,
          .deviation = std::sqrt(squares / static_cast<double>(kept)),
          .percentile_99 = at(0.99),
          .percentile_99_9 = at(0.999)};
}

LatencyOverTime latency_over_time(const Samples& samples, std::uint64_t bytes, double ticks_per_us) {
  LatencyOverTime row{.bytes = bytes, .count = samples.count};
  const double us = static_cast<double>(samples.end - samples.begin) / ticks_per_us;
  if (samples.count > 0 && us > 0) {
    row.average_us = us / 2 / static_cast<double>(samples.count);
    row.per_second = static_cast<double>(samples.count) / us * 1e6;
  }
  return row;
}

}  // namespace hips::write
