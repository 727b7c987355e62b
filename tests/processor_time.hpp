#pragma once

#include <sys/resource.h>

#include <chrono>

namespace hips::test {

/// Processor time of this process and of the children that it has waited for. Unlike elapsed time, it does
/// not grow because other programs use the machine.
inline std::chrono::microseconds processor_time() {
  std::chrono::microseconds sum{0};
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    for (const timeval& time : {usage.ru_utime, usage.ru_stime})
      sum += std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
  }
  return sum;
}

}  // namespace hips::test
