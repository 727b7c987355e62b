#pragma once

#include <cstdint>

#include "lib/base/wait/clock.hpp"

namespace hips {

/// How long a process polls for its peers before it sleeps.
struct SpinLimits {
  int spin_polls = 0;   ///< polls before the first yield
  int yield_polls = 0;  ///< yields before sleeping

  /// If each waiter has a core, a peer's answer arrives during the spin. With fewer cores, spinning keeps the
  /// peer from running, so the waiter yields immediately.
  static SpinLimits of(int waiters, int cores);

  /// Whether there are more waiters than cores.
  [[nodiscard]] bool oversubscribed() const { return spin_polls == 0; }
};

/// Decides what a waiter does after a poll that found nothing: spin, yield or sleep.
///
/// It counts polls, because counting is cheap. It also limits the time, because the duration of a poll
/// differs a hundredfold between machines.
///
/// Threads  one waiter.
class SpinWait {
 public:
  explicit SpinWait(SpinLimits limits)
      : spin_polls_(limits.spin_polls), awake_polls_(limits.spin_polls + limits.yield_polls) {}

  /// Call it after a poll that found something: the wait starts again.
  void reset() { polls_ = 0; }
  /// Pauses or yields and returns true. False: it is time to sleep.
  bool stay_awake(Clock& clock) {
    if (++polls_ > awake_polls_) return false;
    if (polls_ <= spin_polls_) {
      relax();
    } else {
      yield();
    }
    if (polls_ % kPollsPerLook == 0) look(clock);
    return true;
  }
  /// While awake: true from time to time, for the waiter's other duties.
  [[nodiscard]] bool time_to_look() const { return polls_ % kPollsPerTurn == 0; }

 private:
  static constexpr int kPollsPerLook = 16;    ///< polls between two reads of the clock
  static constexpr int kPollsPerTurn = 1024;  ///< polls between two times when time_to_look() is true

  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
  static void yield();
  void look(Clock& clock);

  int spin_polls_, awake_polls_;
  int polls_ = 0;
  std::int64_t sleep_at_ns_ = 0;
};

}  // namespace hips
