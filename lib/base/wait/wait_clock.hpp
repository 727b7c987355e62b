#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/base/wait/clock.hpp"
#include "lib/base/wait/wait_options.hpp"

namespace hips {

/// The time of one wait: when to tick, when it is too late, and how long a sleep may last.
///
/// The clock is asked in look() and sleep_ns() only, so a wait that ends at its first polls costs none.
///
/// Threads  one waiter.
class WaitClock {
 public:
  WaitClock(const WaitOptions& options, Clock& clock) : options_(options), clock_(clock) {}

  /// Ticks where that is due, and says so. The first look starts the time.
  bool look() {
    now_ns_ = clock_.now_ns();
    if (start_ns_ < 0) {
      start_ns_ = now_ns_;
      next_tick_ns_ = now_ns_ + options_.tick_ns;
    }
    if (now_ns_ < next_tick_ns_) return false;
    if (options_.on_tick) options_.on_tick(now_ns_ - start_ns_);
    next_tick_ns_ = now_ns_ + options_.tick_ns;
    return true;
  }
  /// Had the deadline passed at the last look?
  [[nodiscard]] bool late() const { return now_ns_ >= options_.deadline_ns; }
  /// Ticks are a convenience, the deadline is a promise: a sleep lasts until the nearer of the two.
  [[nodiscard]] std::int64_t sleep_ns() const {
    return std::min(options_.tick_ns, std::max<std::int64_t>(0, options_.deadline_ns - clock_.now_ns()));
  }

 private:
  const WaitOptions& options_;
  Clock& clock_;
  std::int64_t start_ns_ = -1;
  std::int64_t next_tick_ns_ = 0;
  std::int64_t now_ns_ = INT64_MIN;
};

}  // namespace hips
