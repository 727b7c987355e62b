#include "lib/base/wait/spin_wait.hpp"

#include <sched.h>

namespace hips {
namespace {

// A wake-up takes about 10 us, so staying awake for longer than this gains a few percent at most.
constexpr std::int64_t kAwakeNs = 500'000;

}  // namespace

SpinLimits SpinLimits::of(int waiters, int cores) {
  const bool oversubscribed = waiters > cores;
  return {.spin_polls = oversubscribed ? 0 : 4000, .yield_polls = oversubscribed ? 200 : 1000};
}

void SpinWait::yield() {
  sched_yield();
}

void SpinWait::look(Clock& clock) {
  const std::int64_t now = clock.now_ns();
  if (polls_ == kPollsPerLook) sleep_at_ns_ = now + kAwakeNs;
  if (now >= sleep_at_ns_) polls_ = awake_polls_;
}

}  // namespace hips
