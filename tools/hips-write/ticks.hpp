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

/// A counter that is cheap to read. Under an emulated CPU the system's clock may cost microseconds.
inline std::uint64_t ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return static_cast<std::uint64_t>(monotonic_ns());
#endif
}

/// How long a tick is, by the system's clock: looked at from its making until now.
class TickRate {
 public:
  TickRate() : ticks_(ticks()), ns_(monotonic_ns()) {}
  /// At least 1 ms after it was made.
  [[nodiscard]] double ticks_per_us() const {
    const auto us = static_cast<double>(monotonic_ns() - ns_) / 1e3;
    return static_cast<double>(ticks() - ticks_) / us;
  }

 private:
  std::uint64_t ticks_;
  std::int64_t ns_;
};

}  // namespace hips::write
