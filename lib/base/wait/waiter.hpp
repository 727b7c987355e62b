#pragma once

#include <cstdint>

#include "lib/base/wait/clock.hpp"
#include "lib/base/wait/wait_policy.hpp"

namespace hips {

/// Decides what a waiter does after a poll that found nothing: spin, yield or sleep; tells the policy how it
/// went.
///
/// It counts polls, because counting is cheap. It also limits the time, because the duration of a poll
/// differs a hundredfold between machines and transports.
///
/// Cost     while it spins: no system call; the clock is read at each 16th poll.
/// Threads  one waiter.
class Waiter {
 public:
  Waiter(WaitPolicy& policy, WaitKind kind, Clock& clock)
      : policy_(policy), clock_(clock), budget_(policy.budget(kind)), kind_(kind) {}
  ~Waiter() { moved(); }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  /// Call it after a poll that found something: the wait starts again.
  void moved() {
    if (polls_ > budget_.spin_polls) learn();
    polls_ = 0;
  }
  /// Pauses or yields and returns true. False: it is time to sleep.
  bool stay_awake() {
    if (++polls_ > budget_.spin_polls) return yield();
    relax();
    if (polls_ % kPollsPerLook == 0) look();
    return true;
  }
  /// While awake: true at each `polls_per_look`th poll, for the waiter's other duties.
  [[nodiscard]] bool time_to_look(int polls_per_look) const { return polls_ % polls_per_look == 0; }

  /// Lets the other thread of a core run.
  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

 private:
  static constexpr int kPollsPerLook = 16;  ///< polls between two reads of the clock

  bool yield();
  void look();
  void learn();

  WaitPolicy& policy_;
  Clock& clock_;
  WaitPolicy::Budget budget_;
  WaitKind kind_;
  int polls_ = 0;
  std::int64_t begin_ns_ = 0;  ///< of the wait, from the first look() on
  std::int64_t num_switches_ =
      -1;  ///< of this thread at the first yield; -1: nothing is learned from this wait
};

}  // namespace hips
