#include "lib/base/wait/idle.hpp"

#include <sched.h>

namespace hips {
namespace {

// Waking up takes some 10 us, so staying awake longer than this gains a few percent at most.
constexpr std::int64_t kAwakeNs = 500'000;

}  // namespace

IdleLimits IdleLimits::of(int waiters, int cores) {
  const bool crowded = waiters > cores;
  return {.spin_polls = crowded ? 0 : 4000, .yield_polls = crowded ? 200 : 1000};
}

void Idle::yield() {
  sched_yield();
}

void Idle::look(Clock& clock) {
  const std::int64_t now = clock.now_ns();
  if (polls_ == kPollsPerLook) sleep_at_ns_ = now + kAwakeNs;
  if (now >= sleep_at_ns_) polls_ = awake_polls_;
}

}  // namespace hips
