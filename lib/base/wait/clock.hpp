#pragma once

#include <cstdint>

namespace hips {

/// A source of time. It is passed in at creation, so that tests and simulation control it.
///
/// Units    ns since an epoch of the clock's own; monotonic.
/// Threads  now_ns() from any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual std::int64_t now_ns() const = 0;
};

/// CLOCK_MONOTONIC, which is equal for all processes of a node.
class SystemClock final : public Clock {
 public:
  [[nodiscard]] std::int64_t now_ns() const override;
  static SystemClock& instance();
};

/// A clock that only advance_ns() advances.
class ManualClock final : public Clock {
 public:
  [[nodiscard]] std::int64_t now_ns() const override { return now_ns_; }
  void advance_ns(std::int64_t by_ns) { now_ns_ += by_ns; }

 private:
  std::int64_t now_ns_ = 0;
};

}  // namespace hips
