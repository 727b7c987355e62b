#pragma once

#include <cstdint>

#include "lib/base/wait/clock.hpp"

namespace hips {

/// How long a process that waits for its peers stays awake.
struct IdleLimits {
  int spin_polls = 0;   ///< polls before the first yield
  int yield_polls = 0;  ///< yields before sleeping

  /// With a core for each waiter a peer's answer comes within the spin; with fewer, whoever spins keeps the
  /// peer from running, so the core is given away at once.
  static IdleLimits of(int waiters, int cores);

  /// Do waiters outnumber cores?
  [[nodiscard]] bool crowded() const { return spin_polls == 0; }
};

/// Spin, yield, sleep: what a waiter does when a poll brought nothing.
///
/// Polls are counted because counting costs nothing, and bounded by time because how long a poll takes
/// differs a hundredfold between machines.
///
/// Threads  one waiter.
class Idle {
 public:
  explicit Idle(IdleLimits limits)
      : spin_polls_(limits.spin_polls), awake_polls_(limits.spin_polls + limits.yield_polls) {}

  /// A poll brought something: start over.
  void moved() { polls_ = 0; }
  /// Pauses or yields, and says true; false: it is time to sleep.
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
  /// While awake: now and then, for what the waiter has to do besides.
  [[nodiscard]] bool look_around() const { return polls_ % kPollsPerTurn == 0; }

 private:
  static constexpr int kPollsPerLook = 16;    ///< between two looks at the clock
  static constexpr int kPollsPerTurn = 1024;  ///< and between two times of looking around

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
