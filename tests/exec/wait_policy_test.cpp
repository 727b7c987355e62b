#include "lib/base/wait/wait_policy.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "lib/base/wait/waiter.hpp"

namespace hips {
namespace {

constexpr auto kNic = WaitKind::kSystemCalls;
constexpr bool kKeptTheCore = false, kLostTheCore = true;

void note(WaitPolicy& policy, bool lost_the_core, int times) {
  for (int i = 0; i < times; ++i) policy.note(kNic, lost_the_core);
}

TEST(WaitPolicy, SpinsNoMoreAfterAFewWaitsInWhichSomebodyElseRan) {
  WaitPolicy policy(SpinLimits::of(1, 1));
  const int most = policy.budget(kNic).spin_polls;
  EXPECT_GT(most, 0);
  note(policy, kLostTheCore, 1);
  EXPECT_GT(policy.budget(kNic).spin_polls, 0) << "one wait may have met a daemon";
  note(policy, kLostTheCore, 7);
  EXPECT_EQ(policy.budget(kNic).spin_polls, 0);
  // Expect: shared memory has learned nothing from that.
  EXPECT_EQ(policy.budget(WaitKind::kMemory).spin_polls, most);
}

TEST(WaitPolicy, SpinsAgainWhenNobodyElseRuns) {
  WaitPolicy policy(SpinLimits::of(1, 1));
  const WaitPolicy::Budget first = policy.budget(kNic);
  note(policy, kLostTheCore, 10);
  note(policy, kKeptTheCore, 3);
  EXPECT_EQ(policy.budget(kNic).spin_polls, 0) << "too early";
  note(policy, kKeptTheCore, 200);
  EXPECT_EQ(policy.budget(kNic).spin_polls, first.spin_polls);
  EXPECT_EQ(policy.budget(kNic).yield_polls, first.yield_polls);
}

TEST(WaitPolicy, MoreProcessesThanCoresEndSpinningForGoodHoweverFewWereMetFirst) {
  WaitPolicy policy(SpinLimits::of(2, 2));
  EXPECT_GT(policy.budget(kNic).spin_polls, 0);
  policy.limit(SpinLimits::of(8, 2));
  policy.limit(SpinLimits::of(2, 2));
  note(policy, kKeptTheCore, 1000);
  EXPECT_EQ(policy.budget(kNic).spin_polls, 0);
}

TEST(WaitPolicy, SleepsSoonerForTransportsThanForMemoryWhereTheCoreIsShared) {
  WaitPolicy learnt(SpinLimits::of(1, 1));
  note(learnt, kLostTheCore, 10);
  WaitPolicy known(SpinLimits::of(8, 2));
  for (WaitPolicy* const policy : {&learnt, &known}) {
    EXPECT_EQ(policy->budget(kNic).spin_polls, 0);
    EXPECT_GT(policy->budget(kNic).yield_polls, 0);
    EXPECT_LE(policy->budget(kNic).yield_polls, 10);
  }
  EXPECT_GE(known.budget(WaitKind::kMemory).yield_polls, 100);
  EXPECT_GE(learnt.budget(WaitKind::kMemory).yield_polls, 100);
}

// A thread that serves others has one waiter for its whole life.
TEST(Waiter, SpinsAgainOnceOthersLeaveTheCoreEvenIfItIsNeverMadeAnew) {
  WaitPolicy policy({.spin_polls = 100, .yield_polls = 20});
  note(policy, kLostTheCore, 10);
  ManualClock clock;
  Waiter waiter(policy, kNic, clock);
  const auto polls_until_sleep = [&] {
    int polls = 0;
    while (waiter.stay_awake()) ++polls;
    waiter.moved();
    return polls;
  };
  EXPECT_LE(polls_until_sleep(), 20);
  // Nobody else runs at most moments; some waits may meet somebody.
  int most = 0;
  for (int i = 0; i < 2000 && most < 120; ++i) {
    clock.advance_ns(1'000'000);
    most = std::max(most, polls_until_sleep());
  }
  EXPECT_EQ(most, 120);
}

TEST(WaitPolicy, AFixedOneLearnsNothing) {
  WaitPolicy policy = WaitPolicy::fixed({10, 20});
  note(policy, kLostTheCore, 100);
  const WaitPolicy::Budget budget = policy.budget(kNic);
  EXPECT_EQ(budget.spin_polls, 10);
  EXPECT_EQ(budget.yield_polls, 20);
}

TEST(Waiter, SpinsThenYieldsThenSleepsAndStartsAgainWhenSomethingMoved) {
  WaitPolicy policy = WaitPolicy::fixed({5, 7});
  ManualClock clock;
  Waiter waiter(policy, kNic, clock);
  for (int round = 0; round < 3; ++round) {
    int polls = 0;
    while (waiter.stay_awake()) ++polls;
    EXPECT_EQ(polls, 12);
    EXPECT_FALSE(waiter.stay_awake());
    waiter.moved();
  }
}

TEST(Waiter, SleepsWhenItsTimeIsUpHoweverFewPollsThatTook) {
  WaitPolicy policy(SpinLimits::of(1, 1));
  ManualClock clock;
  Waiter waiter(policy, kNic, clock);
  int polls = 0;
  for (; waiter.stay_awake(); ++polls) clock.advance_ns(20'000);
  EXPECT_LT(polls, 100);
}

}  // namespace
}  // namespace hips
