#pragma once

#include <cstdint>

namespace hips {

/// Source of time; passed in at creation so that tests and simulation own it.
///
/// Units    ns since an epoch of the clock's own; never goes back.
/// Threads  now_ns() from any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual std::int64_t now_ns() const = 0;
};

/// CLOCK_MONOTONIC: the same for all processes of one machine.
class SystemClock final : public Clock {
 public:
  [[nodiscard]] std::int64_t now_ns() const override;
  static SystemClock& instance();
};

/// A clock that moves only when told to.
class ManualClock final : public Clock {
 public:
  [[nodiscard]] std::int64_t now_ns() const override { return now_ns_; }
  void advance_ns(std::int64_t by_ns) { now_ns_ += by_ns; }

 private:
  std::int64_t now_ns_ = 0;
};

}  // namespace hips
