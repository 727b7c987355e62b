#include "tools/hips-allreduce-perf/overlap.hpp"

#include <algorithm>
#include <cmath>

#include "lib/base/wait/clock.hpp"

namespace hips::perf {

Computation::Computation() : values_(64, 1.0) {
  const SystemClock& clock = SystemClock::instance();
  constexpr std::int64_t kUnits = 2000;
  units(kUnits);
  // The fastest of several runs, which other load disturbed least.
  double best_us = INFINITY;
  for (int i = 0; i < 5; ++i) {
    const std::int64_t begin_ns = clock.now_ns();
    units(kUnits);
    best_us = std::min(best_us, static_cast<double>(clock.now_ns() - begin_ns) / 1e3);
  }
  units_per_us_ = static_cast<double>(kUnits) / best_us;
}

void Computation::run(double us) {
  units(std::llround(us * units_per_us_));
}

void Computation::units(std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    for (double& value : values_) value = value * 0.999999 + 1e-6;
    // Keeps the compiler from removing the computation, whose result is not used.
    asm volatile("" : : "r"(values_.data()) : "memory");
  }
}

}  // namespace hips::perf
