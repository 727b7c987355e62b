#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hips::write {

/// What a run notes, in ticks.
struct Samples {
  struct Completion {
    std::uint64_t count = 0;  ///< messages complete by then
    std::uint64_t tick = 0;
  };
  std::vector<std::uint64_t> posted;    ///< when each message was posted; empty where no peak is looked for
  std::vector<Completion> completions;  ///< where posted is not empty
  std::uint64_t begin = 0, end = 0;     ///< of what is measured
  std::uint64_t count = 0;              ///< messages between them
};

/// The slowest trips, mostly of the start, that no figure but the count has in it.
inline constexpr std::ptrdiff_t kTail = 2;

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

/// The average over all, and the best of all stretches from a posting to a later completion.
///
/// Cost     messages * completions
/// Example  with 2^20 bytes in a message, posted at 0 and complete at 1 s: 1 MB/sec
Bandwidth bandwidth_of(const Samples& samples, std::uint64_t bytes, double ticks_per_us, bool gbits);

/// Half of the times between postings, in the order in which they came.
std::vector<double> half_trips(const Samples& samples, double ticks_per_unit);

/// perftest's figures: the two slowest trips are left out, percentiles are of what is left. `trips` in any
/// order, at least 4.
Latency latency_of(std::vector<double> trips, std::uint64_t bytes, std::uint64_t count);

LatencyOverTime latency_over_time(const Samples& samples, std::uint64_t bytes, double ticks_per_us);

}  // namespace hips::write
