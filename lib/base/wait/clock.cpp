#include "lib/base/wait/clock.hpp"

#include <ctime>

namespace hips {

std::int64_t SystemClock::now_ns() const {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

SystemClock& SystemClock::instance() {
  // Never destroyed: threads read it until the process ends.
  static SystemClock& clock = *new SystemClock;
  return clock;
}

}  // namespace hips
