#include "lib/base/os/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace hips {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t timeout_ns) {
  if (timeout_ns <= 0) return;
  constexpr std::int64_t kNsPerSecond = 1'000'000'000;
  const timespec timeout{.tv_sec = static_cast<time_t>(timeout_ns / kNsPerSecond),
                         .tv_nsec = static_cast<long>(timeout_ns % kNsPerSecond)};
  // Not FUTEX_PRIVATE: private futexes work inside one process only.
  syscall(SYS_futex, &word, FUTEX_WAIT, expected, &timeout, nullptr, 0);
}

void futex_wake_all(const std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace hips
