#include "tools/lab/guest/cycle_counter.hpp"

#if defined(__x86_64__)
#include <x86intrin.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#endif

namespace hips::lab {

#if defined(__x86_64__)
namespace {

std::int64_t measure_khz() {
  using Clock = std::chrono::steady_clock;
  // The median: the host may take the core away between the two readings of a pair.
  std::array<std::int64_t, 5> khz{};
  for (std::int64_t& sample : khz) {
    const auto begin = Clock::now();
    const std::uint64_t first = __rdtsc();
    std::this_thread::sleep_for(std::chrono::milliseconds(4));
    const auto end = Clock::now();
    const std::uint64_t last = __rdtsc();
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count();
    sample = static_cast<std::int64_t>(last - first) * 1'000'000 / ns;
  }
  std::nth_element(khz.begin(), khz.begin() + khz.size() / 2, khz.end());
  return khz[khz.size() / 2];
}

}  // namespace

std::int64_t cycle_counter_khz() {
  static const std::int64_t khz = measure_khz();
  return khz;
}
#else
std::int64_t cycle_counter_khz() {
  return 0;
}
#endif

}  // namespace hips::lab
