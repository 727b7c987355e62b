#include "lib/base/wait/wait_policy.hpp"

#include <algorithm>
#include <array>

namespace hips {
namespace {

constexpr SpinLimits kAlone{.spin_polls = 4000, .yield_polls = 1000};
/// Yields before sleeping where the core is shared, by WaitKind. A system call for each NIC and another one to yield: asleep the
/// process leaves the core to ranks that compute, and the kernel wakes it for what it waits for.
constexpr std::array<int, kNumWaitKinds> kYieldsOfSharedCore{200, 5};
constexpr SpinLimits kOversubscribed{
    .spin_polls = 0, .yield_polls = kYieldsOfSharedCore[static_cast<std::size_t>(WaitKind::kMemory)]};

/// Waits that kept the core until the spin grows, and what it grows from.
constexpr int kNumAlone = 4;
constexpr int kLeastSpin = 64;

}  // namespace

SpinLimits SpinLimits::of(int waiters, int cores) {
  return waiters > cores ? kOversubscribed : kAlone;
}

void WaitPolicy::limit(SpinLimits limits) {
  if (limits.oversubscribed()) oversubscribed_.store(true, std::memory_order_relaxed);
  for (std::size_t kind = 0; kind < learned_.size(); ++kind) {
    Learned& learned = learned_[kind];
    const int yields = learns_ && limits.oversubscribed()
                           ? std::min(limits.yield_polls, kYieldsOfSharedCore[kind])
                           : limits.yield_polls;
    learned.spin_polls.store(std::min(learned.spin_polls.load(std::memory_order_relaxed), limits.spin_polls),
                             std::memory_order_relaxed);
    learned.yield_polls.store(std::min(learned.yield_polls.load(std::memory_order_relaxed), yields),
                              std::memory_order_relaxed);
  }
}

WaitPolicy::Budget WaitPolicy::budget(WaitKind kind) const {
  const Learned& learned = learned_[static_cast<std::size_t>(kind)];
  return {.spin_polls = learned.spin_polls.load(std::memory_order_relaxed),
          .yield_polls = learned.yield_polls.load(std::memory_order_relaxed)};
}

bool WaitPolicy::learns() const {
  return learns_ && !oversubscribed_.load(std::memory_order_relaxed);
}

void WaitPolicy::note(WaitKind kind, bool lost_the_core) {
  if (!learns()) return;
  Learned& learned = learned_[static_cast<std::size_t>(kind)];
  const int spin = learned.spin_polls.load(std::memory_order_relaxed);
  if (lost_the_core) {
    learned.num_alone.store(0, std::memory_order_relaxed);
    const int shorter = spin / 2 < kLeastSpin ? 0 : spin / 2;
    learned.spin_polls.store(shorter, std::memory_order_relaxed);
    if (shorter == 0)
      learned.yield_polls.store(
          std::min(most_.yield_polls, kYieldsOfSharedCore[static_cast<std::size_t>(kind)]),
          std::memory_order_relaxed);
  } else if (learned.num_alone.fetch_add(1, std::memory_order_relaxed) + 1 >= kNumAlone) {
    learned.num_alone.store(0, std::memory_order_relaxed);
    learned.spin_polls.store(std::min(most_.spin_polls, std::max(kLeastSpin, 2 * spin)),
                             std::memory_order_relaxed);
    learned.yield_polls.store(most_.yield_polls, std::memory_order_relaxed);
  }
}

}  // namespace hips
