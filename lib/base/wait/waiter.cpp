#include "lib/base/wait/waiter.hpp"

#include <sched.h>
#include <sys/resource.h>

namespace hips {
namespace {

/// A poll of a transport takes a system call: 4000 of them would be milliseconds.
constexpr std::int64_t kMostSpinNs = 100'000;
/// Of spinning and yielding. A wake-up takes about 10 us, so staying awake for longer gains a few percent at most.
constexpr std::int64_t kMostAwakeNs = 500'000;

/// Times that somebody else got the core although this thread could run. A yield counts if somebody ran.
std::int64_t num_switches() {
  rusage usage{};
  return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

}  // namespace

bool Waiter::yield() {
  if (polls_ > budget_.spin_polls + budget_.yield_polls) return false;
  if (polls_ == budget_.spin_polls + 1 && policy_.learns()) num_switches_ = num_switches();
  sched_yield();
  if (polls_ % kPollsPerLook == 0) look();
  return true;
}

void Waiter::look() {
  const std::int64_t now = clock_.now_ns();
  if (polls_ == kPollsPerLook) begin_ns_ = now;
  if (now - begin_ns_ >= kMostAwakeNs) {
    polls_ = budget_.spin_polls + budget_.yield_polls;
  } else if (polls_ < budget_.spin_polls && now - begin_ns_ >= kMostSpinNs) {
    polls_ = budget_.spin_polls;
  }
}

void Waiter::learn() {
  if (num_switches_ >= 0) policy_.note(kind_, num_switches() > num_switches_);
  num_switches_ = -1;
  budget_ = policy_.budget(kind_);
}

}  // namespace hips
