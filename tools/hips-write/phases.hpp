#pragma once

#include <cstdint>

#include "tools/hips-write/samples.hpp"

namespace hips::write {

/// The beginning and the end of the measured part of a run. It ends after a number of messages, or, with -D,
/// by the clock, without a margin at each end.
class Phases {
 public:
  /// Ends after `count` messages.
  explicit Phases(std::uint64_t count) : count_(count) {}
  /// Ends after `duration` ticks, and ignores `margin` ticks at each end.
  Phases(std::uint64_t duration, std::uint64_t margin) : timed_(true), duration_(duration), margin_(margin) {}

  [[nodiscard]] bool timed() const { return timed_; }
  [[nodiscard]] std::uint64_t count() const { return count_; }

  /// Starts the clock.
  void start(std::uint64_t now, Samples& samples) {
    begin_ = now + margin_;
    samples.begin = samples.end = begin_;
    end_ = now + duration_ - margin_;
    stop_ = now + duration_;
  }
  /// Counts `messages` that are complete at `now`. Only with timed().
  void add(std::uint64_t messages, std::uint64_t now, Samples& samples) const {
    if (now < begin_ || now > end_) return;
    samples.count += messages;
    samples.end = end_;
  }
  /// Counts a message of a ping-pong that is sent at `now`, after `before` others. Returns true if it has to
  /// be the last.
  [[nodiscard]] bool exchange(std::uint64_t before, std::uint64_t now, Samples& samples) const {
    if (!timed_) {
      samples.posted.push_back(now);
      return false;
    }
    if (before > 0) add(1, now, samples);
    return over(now);
  }
  [[nodiscard]] bool over(std::uint64_t now) const { return now >= stop_; }

 private:
  bool timed_ = false;
  std::uint64_t count_ = 0, duration_ = 0, margin_ = 0;
  std::uint64_t begin_ = 0, end_ = 0, stop_ = 0;
};

}  // namespace hips::write
