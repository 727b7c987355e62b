#pragma once

#include <time.h>

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace hips::write {

inline std::int64_t monotonic_ns() {
  timespec now{};
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// Reads a fast counter. Under an emulated CPU, reading the system's clock may take microseconds.
inline std::uint64_t ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return static_cast<std::uint64_t>(monotonic_ns());
#endif
}

/// Measures the rate of ticks() by the system's clock, from its construction until now.
class TickRate {
 public:
  TickRate() : begin_(read_clocks()) {}
  /// Called at least 1 ms after construction.
  [[nodiscard]] double ticks_per_us() const {
    const ClockReading now = read_clocks();
    return static_cast<double>(now.tick - begin_.tick) * 1e3 / static_cast<double>(now.ns - begin_.ns);
  }

 private:
  struct ClockReading {
    std::uint64_t tick = 0;
    std::int64_t ns = 0;
  };
  /// Reads both clocks at the same time: the tightest of a few readings, since a process may be interrupted
  /// between the two.
  static ClockReading read_clocks() {
    constexpr int kReadings = 8;
    ClockReading best;
    std::uint64_t narrowest = ~std::uint64_t{0};
    for (int i = 0; i < kReadings; ++i) {
      const std::uint64_t before = ticks();
      const std::int64_t ns = monotonic_ns();
      const std::uint64_t width = ticks() - before;
      if (width >= narrowest) continue;
      narrowest = width;
      best = {.tick = before + width / 2, .ns = ns};
    }
    return best;
  }

  ClockReading begin_;
};

}  // namespace hips::write
