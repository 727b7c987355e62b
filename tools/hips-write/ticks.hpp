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
  TickRate() : begin_(look()) {}
  /// At least 1 ms after it was made.
  [[nodiscard]] double ticks_per_us() const {
    const Moment now = look();
    return static_cast<double>(now.tick - begin_.tick) * 1e3 / static_cast<double>(now.ns - begin_.ns);
  }

 private:
  struct Moment {
    std::uint64_t tick = 0;
    std::int64_t ns = 0;
  };
  /// Both clocks at one time: the closest of a few looks, since a process may be interrupted between the two.
  static Moment look() {
    constexpr int kLooks = 8;
    Moment best;
    std::uint64_t narrowest = ~std::uint64_t{0};
    for (int i = 0; i < kLooks; ++i) {
      const std::uint64_t before = ticks();
      const std::int64_t ns = monotonic_ns();
      const std::uint64_t width = ticks() - before;
      if (width >= narrowest) continue;
      narrowest = width;
      best = {.tick = before + width / 2, .ns = ns};
    }
    return best;
  }

  Moment begin_;
};

}  // namespace hips::write
