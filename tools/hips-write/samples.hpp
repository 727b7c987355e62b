#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hips::write {

/// The times recorded in a run, in ticks.
struct Samples {
  struct Completion {
    std::uint64_t count = 0;  ///< messages complete by then
    std::uint64_t tick = 0;
  };
  std::vector<std::uint64_t> posted;    ///< when each message was posted; empty without a peak
  std::vector<Completion> completions;  ///< if posted is not empty
  std::uint64_t begin = 0, end = 0;     ///< of the measured part
  std::uint64_t count = 0;              ///< messages in it
};

/// The number of slowest round trips, mostly the first ones, that are in no statistic but the count.
inline constexpr std::ptrdiff_t kIgnoredSlowest = 2;

/// One row of hips-write-bw.
struct Bandwidth {
  std::uint64_t bytes = 0, count = 0;
  double peak = 0, average = 0;  ///< in MB/sec or Gb/sec
  double million_per_s = 0;
};

/// One row of hips-write-lat, half a round trip, in us or cycles.
struct Latency {
  std::uint64_t bytes = 0, count = 0;
  double min = 0, max = 0, typical = 0, average = 0, deviation = 0, percentile_99 = 0, percentile_99_9 = 0;
};

/// One row of hips-write-lat -D.
struct LatencyOverTime {
  std::uint64_t bytes = 0, count = 0;
  double average_us = 0, per_second = 0;
};

/// Computes the average of all messages, and as the peak the best interval from a post to a later completion.
///
/// Cost     messages * completions
/// Example  one message of 2^20 bytes, posted at 0 and complete at 1 s: 1 MB/sec
Bandwidth bandwidth_of(const Samples& samples, std::uint64_t bytes, double ticks_per_us, bool gbits);

/// Halves the times between posts, in order.
std::vector<double> half_round_trips(const Samples& samples, double ticks_per_unit);

/// Computes the statistics of perftest: without the two slowest round trips, percentiles included.
///
/// Shapes   `trips`: at least 4, in any order.
Latency latency_of(std::vector<double> trips, std::uint64_t bytes, std::uint64_t count);

LatencyOverTime latency_over_time(const Samples& samples, std::uint64_t bytes, double ticks_per_us);

}  // namespace hips::write
