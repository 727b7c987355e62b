#include "lib/base/wait/wait_policy.hpp"

#include <algorithm>

namespace hips {
namespace {

constexpr SpinLimits kAlone{.spin_polls = 4000, .yield_polls = 1000};
constexpr SpinLimits kOversubscribed{.spin_polls = 0, .yield_polls = 200};

/// Waits that kept the core until the spin grows, and what it grows from.
constexpr int kNumAlone = 4;
constexpr int kLeastSpin = 64;

}  // namespace

SpinLimits SpinLimits::of(int waiters, int cores) {
  return waiters > cores ? kOversubscribed : kAlone;
}

void WaitPolicy::limit(SpinLimits limits) {
  if (limits.oversubscribed()) oversubscribed_.store(true, std::memory_order_relaxed);
  for (Learned& learned : learned_) {
    learned.spin_polls.store(std::min(learned.spin_polls.load(std::memory_order_relaxed), limits.spin_polls),
                             std::memory_order_relaxed);
    learned.yield_polls.store(
        std::min(learned.yield_polls.load(std::memory_order_relaxed), limits.yield_polls),
        std::memory_order_relaxed);
  }
}

WaitPolicy::Budget WaitPolicy::budget(WaitKind kind) const {
  const Learned& learned = learned_[static_cast<std::size_t>(kind)];
  return {.spin_polls = learned.spin_polls.load(std::memory_order_relaxed),
          .yield_polls = learned.yield_polls.load(std::memory_order_relaxed),
          .can_change = learns_ && !oversubscribed_.load(std::memory_order_relaxed)};
}

void WaitPolicy::note(WaitKind kind, bool lost_the_core) {
  if (!learns_ || oversubscribed_.load(std::memory_order_relaxed)) return;
  Learned& learned = learned_[static_cast<std::size_t>(kind)];
  const int spin = learned.spin_polls.load(std::memory_order_relaxed);
  if (lost_the_core) {
    learned.num_alone.store(0, std::memory_order_relaxed);
    const int shorter = spin / 2 < kLeastSpin ? 0 : spin / 2;
    learned.spin_polls.store(shorter, std::memory_order_relaxed);
    if (shorter == 0)
      learned.yield_polls.store(std::min(most_.yield_polls, kOversubscribed.yield_polls),
                                std::memory_order_relaxed);
  } else if (learned.num_alone.fetch_add(1, std::memory_order_relaxed) + 1 >= kNumAlone) {
    learned.num_alone.store(0, std::memory_order_relaxed);
    learned.spin_polls.store(std::min(most_.spin_polls, std::max(kLeastSpin, 2 * spin)),
                             std::memory_order_relaxed);
    learned.yield_polls.store(most_.yield_polls, std::memory_order_relaxed);
  }
}

}  // namespace hips
