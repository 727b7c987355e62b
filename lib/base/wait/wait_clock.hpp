#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/base/wait/clock.hpp"
#include "lib/base/wait/wait_options.hpp"

namespace hips {

/// The times of one wait: ticks, the deadline, and the length of a sleep.
///
/// Only look() and sleep_ns() read the clock, so a wait that ends after a few polls never reads it.
///
/// Threads  one waiter.
class WaitClock {
 public:
  WaitClock(const WaitOptions& options, Clock& clock) : options_(options), clock_(clock) {}

  /// Reads the clock; true if a tick is due. The first look() starts the time.
  bool look() {
    now_ns_ = clock_.now_ns();
    if (start_ns_ < 0) {
      start_ns_ = now_ns_;
      next_tick_ns_ = now_ns_ + options_.tick_ns;
    }
    return now_ns_ >= next_tick_ns_;
  }
  /// Calls on_tick. The next one is due a tick after the last look().
  void tick() {
    next_tick_ns_ = now_ns_ + options_.tick_ns;
    if (options_.on_tick) options_.on_tick(now_ns_ - start_ns_);
  }
  /// Polls between two calls of look() while awake: few where ticks are due often.
  [[nodiscard]] int polls_per_look() const { return options_.tick_ns < kShortTickNs ? 64 : 1024; }
  /// Whether the deadline had passed at the last look().
  [[nodiscard]] bool late() const { return now_ns_ >= options_.deadline_ns; }
  /// The time until the next tick or the deadline, whichever is nearer. Ticks may come late; the deadline
  /// must not.
  [[nodiscard]] std::int64_t sleep_ns() const {
    return std::min(options_.tick_ns, std::max<std::int64_t>(0, options_.deadline_ns - clock_.now_ns()));
  }

 private:
  static constexpr std::int64_t kShortTickNs = 100'000;

  const WaitOptions& options_;
  Clock& clock_;
  std::int64_t start_ns_ = -1;
  std::int64_t next_tick_ns_ = 0;
  std::int64_t now_ns_ = INT64_MIN;
};

}  // namespace hips
