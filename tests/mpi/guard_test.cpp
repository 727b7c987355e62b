#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "lib/base/log.hpp"
#include "lib/mpi/tuning/adoption.hpp"
#include "lib/mpi/tuning/guard.hpp"
#include "lib/mpi/tuning/guard_mode.hpp"
#include "lib/mpi/tuning/guard_table.hpp"
#include "lib/mpi/tuning/guard_table_file.hpp"

namespace hips::mpi {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr CallClass kSmall{ReduceOp::kSum, 10};
constexpr CallClass kLarge{ReduceOp::kSum, 24};

std::mt19937_64 seeded() {
  const char* given = std::getenv("HIPS_SEED");
  const std::uint64_t seed = given ? std::stoull(given) : std::random_device()();
  std::cout << "HIPS_SEED=" << seed << std::endl;
  return std::mt19937_64(seed);
}

// ---- Trials and decisions ------------------------------------------------------------------------------

/// The time of a trial on one rank.
using Measured = std::function<std::int64_t(int rank, TuningChoice choice, int trial)>;

/// All ranks make the trials of a class together and exchange their times.
std::vector<Guard> run_trials(int num_ranks, CallClass of, const Measured& measured) {
  std::vector<Guard> ranks(static_cast<std::size_t>(num_ranks), Guard(true));
  for (int trial = 0; ranks[0].choice(of) == TuningChoice::kTrial; ++trial) {
    for (int r = 0; r < num_ranks; ++r) {
      Guard& guard = ranks[static_cast<std::size_t>(r)];
      EXPECT_EQ(guard.choice(of), TuningChoice::kTrial);
      EXPECT_EQ(guard.next(of), ranks[0].next(of)) << "rank " << r << ", trial " << trial;
    }
    const TuningChoice choice = ranks[0].next(of);
    for (int r = 0; r < num_ranks; ++r)
      ranks[static_cast<std::size_t>(r)].add_sample(of, measured(r, choice, trial), 0);
    if (!ranks[0].complete(of)) continue;
    std::vector<std::int64_t> slowest(ranks[0].samples(of).size());
    for (Guard& guard : ranks)
      for (std::size_t i = 0; i < slowest.size(); ++i)
        slowest[i] = std::max(slowest[i], guard.samples(of)[i]);
    for (Guard& guard : ranks) {
      std::ranges::copy(slowest, guard.samples(of).begin());
      guard.decide(of);
    }
  }
  return ranks;
}

void expect_decision(const TuningDecision& decided, TuningChoice winner, std::int64_t hips_ns,
                     std::int64_t native_ns) {
  EXPECT_EQ(decided.winner, winner);
  EXPECT_EQ(decided.hips_ns, hips_ns);
  EXPECT_EQ(decided.native_ns, native_ns);
}

TuningChoice winner(std::int64_t hips_ns, std::int64_t native_ns) {
  return run_trials(1, kSmall,
                    [&](int, TuningChoice choice, int) {
                      return choice == TuningChoice::kNative ? native_ns : hips_ns;
                    })[0]
      .choice(kSmall);
}

TEST(Guard, ClassesCoverAllSizesWithoutGap) {
  EXPECT_EQ(CallClass::of(1, ReduceOp::kSum).size_class, 1);
  std::uint64_t next = 1;
  for (int size = 1; size < CallClass::kNumSizes; ++size) {
    const CallClass of{ReduceOp::kMax, size};
    EXPECT_EQ(of.least_bytes(), next);
    EXPECT_EQ(CallClass::of(of.least_bytes(), ReduceOp::kMax), of);
    EXPECT_EQ(CallClass::of(of.most_bytes(), ReduceOp::kMax), of);
    next = of.most_bytes() + 1;
  }
  EXPECT_EQ(next, 0u) << "the last class ends with the largest number";
}

TEST(Guard, TrialsAlternateAndDoNotTimeTheFirstCallOfEachSide) {
  for (const CallClass of : {kSmall, kLarge}) {
    Guard guard(true);
    std::vector<TuningChoice> choices;
    for (; !guard.complete(of); guard.add_sample(of, static_cast<std::int64_t>(choices.size()), 0))
      choices.push_back(guard.next(of));
    ASSERT_EQ(choices.size(), 2u * (1 + static_cast<unsigned>(Guard::num_trials(of))));
    for (std::size_t i = 0; i < choices.size(); i += 2) EXPECT_NE(choices[i], choices[i + 1]);
    EXPECT_EQ(guard.samples(of).size(), choices.size() - 2);
    const std::vector<std::int64_t> samples(guard.samples(of).begin(), guard.samples(of).end());
    for (std::size_t i = 0; i < samples.size(); ++i)
      EXPECT_EQ(choices[static_cast<std::size_t>(samples[i]) - 1],
                i % 2 == 0 ? TuningChoice::kNative : TuningChoice::kHips);
    EXPECT_EQ(std::min(samples[0], samples[1]), 3);
  }
  EXPECT_LT(Guard::num_trials(kLarge), Guard::num_trials(kSmall)) << "large calls take longer";
}

TEST(Guard, ALoopOfShortAndLongCallsDoesNotGiveTheLongOnesToOneSide) {
  // The calls of the loop differ by a factor of two, the sides by less.
  for (const CallClass of : {kSmall, CallClass{ReduceOp::kSum, 20}, kLarge}) {
    for (const int period : {1, 2, 3, 4}) {
      for (int phase = 0; phase < period; ++phase) {
        for (const double hips : {0.77, 1.01, 1.3}) {
          if (of == kLarge && period == 3) continue;  // it has too few trials for that
          const auto measured = [&](int, TuningChoice choice, int trial) {
            const double ns = trial % period == phase ? 2000 : 1000;
            return static_cast<std::int64_t>(choice == TuningChoice::kHips ? hips * ns : ns);
          };
          const TuningDecision decided = run_trials(1, of, measured)[0].decisions().at(of);
          EXPECT_EQ(decided.winner, hips > 1.05 ? TuningChoice::kNative : TuningChoice::kHips)
              << "class " << of.size_class << ", period " << period << ", phase " << phase << ", " << hips;
        }
      }
    }
  }
}

TEST(Guard, AReviewGivesNoSideItsOwnCallsOfTheProgramsLoop) {
  for (const CallClass of : {kSmall, CallClass{ReduceOp::kSum, 20}, kLarge}) {
    for (const int period : {2, 3, 4, 8, 16}) {
      const int timed = Guard::review_block(of) - 1;
      if (timed % period != 0 && timed < 8 * period) continue;  // too few
      for (int phase = 0; phase < period; ++phase) {
        for (const TuningChoice before : {TuningChoice::kHips, TuningChoice::kNative}) {
          Guard guard(true);
          guard.set(of, {.winner = before, .hips_ns = 1000, .native_ns = 1000});
          int call = 0;
          for (; guard.begin_call(of) != TuningChoice::kTrial; ++call) {
          }
          for (std::int64_t end_ns = 0; !guard.complete(of); ++call) {
            const std::int64_t ns = call % period == phase ? 2000 : 1000;
            guard.add_sample(of, ns, end_ns += ns);
          }
          ASSERT_NE(guard.decide(of), nullptr);
          EXPECT_EQ(guard.choice(of), before)
              << "class " << of.size_class << ", period " << period << ", phase " << phase;
        }
      }
    }
  }
}

TEST(Guard, AReviewCostsASmallPartOfTheCallsBeforeHoweverSlowTheOtherSideIs) {
  for (const CallClass of : {kSmall, CallClass{ReduceOp::kSum, 20}, kLarge}) {
    for (const std::int64_t slower_ns : {1100, 2000, 2900, 3100, 10'000, 50'000, 500'000}) {
      Guard guard(true);
      guard.set(of, {.winner = TuningChoice::kHips, .hips_ns = 1000, .native_ns = slower_ns});
      double before = 0, slow_calls = 0;
      for (; guard.begin_call(of) != TuningChoice::kTrial; ++before) {
      }
      for (std::int64_t end_ns = 0; !guard.complete(of);) {
        const bool is_slow = guard.next(of) == TuningChoice::kNative;
        slow_calls += is_slow ? 1 : 0;
        const std::int64_t ns = is_slow ? slower_ns : 1000;
        guard.add_sample(of, ns, end_ns += ns);
      }
      const double lost = slow_calls * static_cast<double>(slower_ns - 1000) / 1000;
      EXPECT_LE(lost, 0.15 * (before + slow_calls)) << "class " << of.size_class << ", " << slower_ns;
    }
  }
}

TEST(Guard, AReviewOfCallsThatScatterMoreThanTheyDifferChangesNothing) {
  // Native MPI's calls are 10 % shorter in the mean of the blocks, which differ by 30 %.
  Guard guard(true);
  guard.set(kSmall, {.winner = TuningChoice::kHips, .hips_ns = 1000, .native_ns = 1000});
  while (guard.begin_call(kSmall) != TuningChoice::kTrial) {
  }
  std::int64_t end_ns = 0;
  for (int call = 0; !guard.complete(kSmall); ++call) {
    const std::int64_t centre = guard.next(kSmall) == TuningChoice::kNative ? 900 : 1000;
    const std::int64_t ns = centre + (call / Guard::review_block(kSmall) / 2 - 1) * 300;
    guard.add_sample(kSmall, ns, end_ns += 100'000);
  }
  ASSERT_NE(guard.decide(kSmall), nullptr);
  EXPECT_EQ(guard.choice(kSmall), TuningChoice::kHips);
}

TEST(Guard, RequestsFollowTheDecisionWhileItIsLookedAtAgain) {
  Guard guard(true);
  EXPECT_EQ(guard.choice_of_requests(kSmall), TuningChoice::kHips);
  guard.set(kSmall, {.winner = TuningChoice::kNative, .hips_ns = 1000, .native_ns = 500});
  while (guard.begin_call(kSmall) != TuningChoice::kTrial) {
  }
  EXPECT_TRUE(guard.is_review(kSmall));
  EXPECT_EQ(guard.choice_of_requests(kSmall), TuningChoice::kNative);
}

TEST(Guard, AClassThatHipsCannotExecuteIsNativeMpisForGood) {
  Guard guard(true);
  guard.add_sample(kSmall, 1, 0);
  guard.give_to_native(kSmall);
  for (int call = 0; call < 100'000; ++call) ASSERT_EQ(guard.begin_call(kSmall), TuningChoice::kNative);
  EXPECT_EQ(guard.choice_of_requests(kSmall), TuningChoice::kNative);
}

TEST(Guard, ALaterGuardOfTheSameRanksGoesOnFromTheTrials) {
  // A program duplicates a communicator, makes five calls, and frees it, again and again.
  std::map<CallClass, Guard::Trials> unfinished;
  std::map<CallClass, TuningDecision> decisions;
  int guards = 0;
  for (; decisions.empty() && guards < 100; ++guards) {
    Guard guard(true);
    guard.resume(unfinished);
    for (int call = 0; call < 5 && guard.begin_call(kSmall) == TuningChoice::kTrial; ++call) {
      EXPECT_EQ(guard.num_done(kSmall), 5 * guards + call);
      guard.add_sample(kSmall, guard.next(kSmall) == TuningChoice::kNative ? 500 : 1000, 0);
      if (guard.complete(kSmall)) guard.decide(kSmall);
    }
    unfinished = guard.unfinished();
    decisions = guard.decisions();
  }
  EXPECT_EQ(guards, (Guard::most_calls(kSmall) - 2 * Guard::kWarmUps + 2 + 4) / 5);
  EXPECT_EQ(decisions.at(kSmall).winner, TuningChoice::kNative);
  EXPECT_TRUE(unfinished.empty());

  // A class that was decided meanwhile has no trials.
  Guard guard(true);
  guard.set(kSmall, decisions.at(kSmall));
  Guard other(true);
  other.add_sample(kSmall, 1, 0);
  guard.resume(other.unfinished());
  EXPECT_EQ(guard.num_done(kSmall), 0);
}

TEST(Guard, ADecisionThatHoldsIsLookedAtMoreRarelyOnLaterCommunicatorsToo) {
  const auto calls_until_review = [](const TuningDecision& decision) {
    Guard guard(true);
    guard.set(kSmall, decision);
    int calls = 1;
    while (guard.begin_call(kSmall) != TuningChoice::kTrial) ++calls;
    return calls;
  };
  Guard guard(true);
  guard.set(kSmall, {.winner = TuningChoice::kHips, .hips_ns = 500, .native_ns = 1000});
  const int first = calls_until_review(guard.decisions().at(kSmall));
  std::int64_t end_ns = 0;
  while (guard.begin_call(kSmall) != TuningChoice::kTrial) {
  }
  while (!guard.complete(kSmall)) {
    const std::int64_t ns = guard.next(kSmall) == TuningChoice::kNative ? 1000 : 500;
    guard.add_sample(kSmall, ns, end_ns += ns);
  }
  ASSERT_NE(guard.decide(kSmall), nullptr);
  EXPECT_EQ(calls_until_review(guard.decisions().at(kSmall)), 8 * first);
}

TEST(Guard, LaterGuardsOfTheSameRanksGoOnCountingToTheReview) {
  // A program duplicates a communicator, makes 40 calls, and frees it, again and again.
  std::map<CallClass, TuningDecision> decisions{
      {kSmall, {.winner = TuningChoice::kHips, .hips_ns = 1000, .native_ns = 1000}}};
  std::vector<int> reviewed_at;
  int calls = 0;
  for (int guards = 0; guards < 40; ++guards) {
    Guard guard(true);
    guard.set(kSmall, decisions.at(kSmall));
    EXPECT_EQ(guard.decisions().at(kSmall).calls_left, 0u);
    for (int call = 0; call < 40; ++call, ++calls) {
      if (guard.begin_call(kSmall) != TuningChoice::kTrial) continue;
      if (reviewed_at.empty() || guard.num_done(kSmall) == 0) reviewed_at.push_back(calls);
      guard.add_sample(kSmall, 1000, calls * 2000);
      if (guard.complete(kSmall)) decisions[kSmall] = *guard.decide(kSmall);
    }
    guard.keep_calls_left(decisions);
  }
  // None of them lives long enough for a whole review, so each begins one.
  ASSERT_FALSE(reviewed_at.empty());
  EXPECT_EQ(reviewed_at.front(), 149);
}

TEST(Guard, TheFasterSideWinsAndHipsWinsTies) {
  EXPECT_EQ(winner(1000, 2000), TuningChoice::kHips);
  EXPECT_EQ(winner(2000, 1000), TuningChoice::kNative);
  EXPECT_EQ(winner(1000, 1000), TuningChoice::kHips);
  EXPECT_EQ(winner(1000, 960), TuningChoice::kHips) << "4 % is a tie";
  EXPECT_EQ(winner(1000, 900), TuningChoice::kNative);
}

TEST(Guard, ABarrierIsHipsOnlyWhereItIsFaster) {
  constexpr CallClass kBarrier{Collective::kBarrier, 1};
  const auto winner_of = [](std::int64_t hips_ns, std::int64_t native_ns) {
    return run_trials(1, kBarrier,
                      [&](int, TuningChoice choice, int) {
                        return choice == TuningChoice::kNative ? native_ns : hips_ns;
                      })[0]
        .choice(kBarrier);
  };
  EXPECT_EQ(winner_of(1000, 1000), TuningChoice::kNative);
  EXPECT_EQ(winner_of(1000, 1040), TuningChoice::kNative);
  EXPECT_EQ(winner_of(1000, 1100), TuningChoice::kHips);

  // And where it stays so: in the program, whose ranks are early and late, both may take as long.
  for (const auto& [native_ns, stays] : {std::pair<std::int64_t, bool>{1000, false}, {1200, true}}) {
    Guard guard(true);
    guard.set(kBarrier, {.winner = TuningChoice::kHips, .hips_ns = 500, .native_ns = 1000});
    while (guard.begin_call(kBarrier) != TuningChoice::kTrial) {
    }
    for (std::int64_t end_ns = 0; !guard.complete(kBarrier);) {
      const std::int64_t ns = guard.next(kBarrier) == TuningChoice::kNative ? native_ns : 1000;
      guard.add_sample(kBarrier, ns, end_ns += 5000);
    }
    ASSERT_NE(guard.decide(kBarrier), nullptr);
    EXPECT_EQ(guard.choice(kBarrier), stays ? TuningChoice::kHips : TuningChoice::kNative);
  }
}

TEST(Guard, ADifferenceWithinTheScatterOfTheSamplesIsATie) {
  // Native MPI's median is 10 % lower, but both scatter by 20 %.
  const auto of = [](std::int64_t centre, int trial) { return centre + (trial / 2 % 3 - 1) * centre / 5; };
  const auto measured = [&](int, TuningChoice choice, int trial) {
    return of(choice == TuningChoice::kNative ? 900 : 1000, trial);
  };
  EXPECT_EQ(run_trials(1, kSmall, measured)[0].choice(kSmall), TuningChoice::kHips);
  const auto steady = [&](int, TuningChoice choice, int) {
    return choice == TuningChoice::kNative ? 900 : 1000;
  };
  EXPECT_EQ(run_trials(1, kSmall, steady)[0].choice(kSmall), TuningChoice::kNative);
}

TEST(Guard, OneDisturbedTrialDoesNotChangeTheDecision) {
  const auto measured = [](int, TuningChoice choice, int trial) {
    return trial == 5 ? 1'000'000 : choice == TuningChoice::kNative ? 2000 : 1000;
  };
  EXPECT_EQ(run_trials(1, kSmall, measured)[0].choice(kSmall), TuningChoice::kHips);
}

TEST(Guard, NativeMpiHasToWinTwice) {
  // HiPS touches its memory for the first time in its first calls, or another job uses the machine for a
  // while.
  const auto slow_at_first = [](int, TuningChoice choice, int trial) {
    return choice == TuningChoice::kNative ? 2000 : trial < 8 ? 9000 : 1000;
  };
  const Guard warmed_up = run_trials(1, kLarge, slow_at_first)[0];
  expect_decision(warmed_up.decisions().at(kLarge), TuningChoice::kHips, 1000, 2000);
  int num_calls = 0;
  const auto native_is_faster = [&](int, TuningChoice choice, int) {
    ++num_calls;
    return choice == TuningChoice::kNative ? 1000 : 2000;
  };
  const Guard slower = run_trials(1, kLarge, native_is_faster)[0];
  expect_decision(slower.decisions().at(kLarge), TuningChoice::kNative, 2000, 1000);
  EXPECT_EQ(num_calls, Guard::most_calls(kLarge));
}

TEST(Guard, AllRanksDecideAlikeWhereOneRankMeasuresOtherwise) {
  // Ranks 0 and 1 leave native MPI's call early; rank 2 is delayed in it. The slowest rank counts.
  const auto slow_in_native = [](int rank, TuningChoice choice, int) {
    return choice == TuningChoice::kHips ? 2000 : rank == 2 ? 9000 : 1000;
  };
  for (const Guard& guard : run_trials(3, kSmall, slow_in_native)) {
    EXPECT_EQ(guard.choice(kSmall), TuningChoice::kHips);
    expect_decision(guard.decisions().at(kSmall), TuningChoice::kHips, 2000, 9000);
  }
  const auto slow_in_hips = [](int rank, TuningChoice choice, int) {
    return choice == TuningChoice::kNative ? 2000 : rank == 1 ? 9000 : 1000;
  };
  for (const Guard& guard : run_trials(3, kSmall, slow_in_hips))
    EXPECT_EQ(guard.choice(kSmall), TuningChoice::kNative);
}

/// Makes `num` blocking calls of a decided class on one rank, which computes for `compute_ns` before each; returns who
/// executed each.
std::vector<TuningChoice> run_calls(
    Guard& guard, CallClass of, int num, const std::function<std::int64_t(TuningChoice)>& time_of,
    const std::function<std::int64_t(TuningChoice)>& compute_ns = [](TuningChoice) { return 100; }) {
  std::vector<TuningChoice> executed;
  std::int64_t now_ns = 0;
  for (int i = 0; i < num; ++i) {
    TuningChoice choice = guard.begin_call(of);
    if (choice == TuningChoice::kTrial) {
      EXPECT_TRUE(guard.is_review(of));
      choice = guard.next(of);
      const std::int64_t ns = time_of(choice);
      now_ns += compute_ns(choice) + ns;
      guard.add_sample(of, ns, now_ns);
      if (guard.complete(of)) {
        EXPECT_NE(guard.decide(of), nullptr);
      }
    }
    executed.push_back(choice);
  }
  return executed;
}

TEST(Guard, AReviewChangesTheWinnerWhereCallsAsTheProgramMakesThemAreSlower) {
  for (const CallClass of : {kSmall, kLarge}) {
    Guard guard(true);
    // In the trials, which all ranks begin together, HiPS was faster.
    guard.set(of, {TuningChoice::kHips, 1000, 1200});
    const auto native_is_faster = [](TuningChoice choice) {
      return choice == TuningChoice::kNative ? 1000 : 1200;
    };
    const auto first = run_calls(guard, of, 400, native_is_faster);
    EXPECT_EQ(guard.choice(of), TuningChoice::kNative);
    expect_decision(guard.decisions().at(of), TuningChoice::kNative, 1200, 1000);
    const auto hips_calls = std::ranges::count(first, TuningChoice::kHips);
    EXPECT_LT(hips_calls, 250) << "it goes back soon";
    // And returns when that has changed, after more calls.
    const auto hips_is_faster = [](TuningChoice choice) {
      return choice == TuningChoice::kNative ? 1200 : 1000;
    };
    run_calls(guard, of, 3000, hips_is_faster);
    EXPECT_EQ(guard.choice(of), TuningChoice::kHips);
  }
}

TEST(Guard, AReviewSeesThatARankThatWaitsSlowsDownOthers) {
  const auto call = [](TuningChoice) { return 1000; };
  const auto slower_with_hips = [](TuningChoice choice) {
    return choice == TuningChoice::kHips ? 3000 : 2500;
  };
  Guard guard(true);
  guard.set(kSmall, {TuningChoice::kHips, 1000, 1200});
  run_calls(guard, kSmall, 400, call, slower_with_hips);
  EXPECT_EQ(guard.choice(kSmall), TuningChoice::kNative);
  // Calls of native MPI take longer, but what they leave to the program is worth more.
  const auto short_hips = [](TuningChoice choice) { return choice == TuningChoice::kHips ? 900 : 1000; };
  run_calls(guard, kSmall, 3000, short_hips, slower_with_hips);
  EXPECT_EQ(guard.choice(kSmall), TuningChoice::kNative);
}

TEST(Guard, ReviewsBecomeRareAndChangeNothingWithinFivePercent) {
  Guard guard(true);
  guard.set(kSmall, {TuningChoice::kHips, 1000, 1200});
  const auto about_equal = [](TuningChoice choice) { return choice == TuningChoice::kNative ? 1000 : 1040; };
  const auto executed = run_calls(guard, kSmall, 100'000, about_equal);
  EXPECT_EQ(guard.choice(kSmall), TuningChoice::kHips);
  const auto native_calls = std::ranges::count(executed, TuningChoice::kNative);
  EXPECT_GE(native_calls, Guard::kReviewRounds * Guard::review_block(kSmall));
  EXPECT_LE(native_calls, 1000);
}

TEST(Guard, OneDisturbedBlockDoesNotChangeTheWinner) {
  Guard guard(true);
  guard.set(kSmall, {TuningChoice::kHips, 1000, 1200});
  int calls = 0;
  run_calls(guard, kSmall, 400, [&](TuningChoice choice) {
    return ++calls == 12 ? 1'000'000 : choice == TuningChoice::kNative ? 1200 : 1000;
  });
  EXPECT_EQ(guard.choice(kSmall), TuningChoice::kHips);
}

TEST(Guard, ACallThatIsRefusedOnOneRankDoesNotMoveItsReview) {
  Guard one(true), other(true);
  for (Guard* guard : {&one, &other}) guard->set(kSmall, {TuningChoice::kHips, 1000, 1200});
  int calls = 0;
  for (; one.choice(kSmall) == TuningChoice::kHips && calls < 10'000; ++calls) {
    if (calls % 3 == 0) {
      EXPECT_EQ(other.begin_call(kSmall), other.choice(kSmall));
      other.take_back_call(kSmall);
    }
    EXPECT_EQ(one.begin_call(kSmall), other.begin_call(kSmall)) << calls;
  }
  EXPECT_TRUE(one.is_review(kSmall));
  EXPECT_TRUE(other.is_review(kSmall));
}

TEST(Guard, WithoutTrialsThereIsNoReview) {
  Guard guard(false);
  guard.set(kSmall, {TuningChoice::kNative, 2, 1});
  for (int i = 0; i < 100'000; ++i) {
    ASSERT_EQ(guard.begin_call(kSmall), TuningChoice::kNative);
    ASSERT_EQ(guard.begin_call(kLarge), TuningChoice::kHips);
  }
}

TEST(Guard, RanksWithRandomTimesDecideAlike) {
  std::mt19937_64 random = seeded();
  for (int round = 0; round < 500; ++round) {
    const int num_ranks = 1 + static_cast<int>(random() % 9);
    const CallClass of{CallKind::of_index(static_cast<int>(random() % CallKind::kNum)),
                       1 + static_cast<int>(random() % 40)};
    const auto measured = [&](int, TuningChoice, int) { return static_cast<std::int64_t>(random() % 1000); };
    const std::vector<Guard> ranks = run_trials(num_ranks, of, measured);
    for (const Guard& guard : ranks) {
      EXPECT_NE(guard.choice(of), TuningChoice::kTrial);
      EXPECT_EQ(guard.decisions(), ranks[0].decisions());
    }
  }
}

TEST(Guard, EachClassIsDecidedSeparately) {
  Guard guard(true);
  guard.set(kSmall, {TuningChoice::kNative, 2, 1});
  EXPECT_EQ(guard.choice(kSmall), TuningChoice::kNative);
  EXPECT_EQ(guard.choice({ReduceOp::kMax, kSmall.size_class}), TuningChoice::kTrial);
  EXPECT_EQ(guard.choice(kLarge), TuningChoice::kTrial);
  guard.add_sample(kLarge, 1, 0);
  EXPECT_EQ(guard.undecided(), (std::map<CallClass, int>{{kLarge, 1}}));
}

TEST(Guard, HipsExecutesUndecidedClassesWithoutTrials) {
  Guard guard(false);
  EXPECT_EQ(guard.choice(kSmall), TuningChoice::kHips);
  guard.set(kSmall, {TuningChoice::kNative, 2, 1});
  EXPECT_EQ(guard.choice(kSmall), TuningChoice::kNative);
}

// ---- The mode ------------------------------------------------------------------------------------------

TEST(GuardMode, VariablesChooseTheMode) {
  const auto mode = [](const Environment& environment) {
    const LoadedConfig loaded = load_config(environment);
    EXPECT_TRUE(loaded.status.ok()) << loaded.status.message;
    return guard_mode_of(loaded.config, true);
  };
  EXPECT_TRUE(mode({}).has_trials);
  EXPECT_EQ(mode({}).text, "on");
  EXPECT_FALSE(mode({}).uses_table) << "there is no table";
  EXPECT_TRUE(mode({{"HIPS_GUARD_TABLE", "f"}}).uses_table);
  for (const char* name : {"HIPS_TOPO", "HIPS_ALGORITHM", "HIPS_PATTERN"}) {
    EXPECT_FALSE(mode({{name, "ring"}}).has_trials) << name;
    EXPECT_THAT(mode({{name, "ring"}}).text, HasSubstr("off: a topology or a plan is named"));
    EXPECT_TRUE(mode({{name, "ring"}, {"HIPS_GUARD", "on"}}).has_trials) << name;
  }
  EXPECT_FALSE(mode({{"HIPS_RINGS", "2"}}).has_trials);
  EXPECT_THAT(mode({{"HIPS_GUARD", "off"}}).text, HasSubstr("off: HIPS_GUARD"));
  EXPECT_FALSE(mode({{"HIPS_GUARD", "off"}, {"HIPS_GUARD_TABLE", "f"}}).uses_table);
}

TEST(GuardMode, ReproducibleRunsHaveNoTrials) {
  const auto mode = [](const Environment& environment) {
    return guard_mode_of(load_config(environment).config, true);
  };
  const GuardMode run = mode({{"HIPS_REPRODUCIBLE", "run"}, {"HIPS_GUARD", "on"}});
  EXPECT_FALSE(run.has_trials);
  EXPECT_FALSE(run.uses_table);
  const GuardMode with_table = mode({{"HIPS_REPRODUCIBLE", "run"}, {"HIPS_GUARD_TABLE", "f"}});
  EXPECT_FALSE(with_table.has_trials);
  EXPECT_TRUE(with_table.uses_table);
  // Native MPI reduces in an order of its own.
  const GuardMode any = mode({{"HIPS_REPRODUCIBLE", "any"}, {"HIPS_GUARD", "on"}, {"HIPS_GUARD_TABLE", "f"}});
  EXPECT_FALSE(any.has_trials);
  EXPECT_FALSE(any.uses_table);
  EXPECT_THAT(any.text, HasSubstr("HIPS_REPRODUCIBLE=any"));
}

// ---- The table -----------------------------------------------------------------------------------------

const TuningScope kScope{"2x4,1x2", "shm,verbs", "Open_MPI_v4.1.4"};

GuardTable some_table() {
  GuardTable table;
  table.add({kScope, kSmall}, {TuningChoice::kNative, 3000, 2000});
  table.add({kScope, kLarge}, {TuningChoice::kHips, 1000, 2000});
  table.add({{"1x4", "memory", "Open_MPI_v4.1.4"}, {ReduceOp::kMax, 64}}, {TuningChoice::kHips, 0, 1});
  return table;
}

class TableFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/guard_table.XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    log::redirect([this](log::LogLevel, std::string_view line) { log_ += std::string(line) + "\n"; });
  }
  void TearDown() override {
    log::redirect({});
    std::filesystem::remove_all(folder_);
  }
  [[nodiscard]] std::string path() const { return folder_ + "/table"; }
  void write(const std::string& text) const { std::ofstream(path(), std::ios::binary) << text; }
  [[nodiscard]] std::string read() const {
    std::ifstream file(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      names.push_back(entry.path().filename());
    return names;
  }

  std::string folder_, log_;
};

TEST_F(TableFile, AFileReadsBackAsItWasWritten) {
  ASSERT_TRUE(save_guard_table(some_table(), path()).ok());
  const auto loaded = load_guard_table(path());
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->decisions(), some_table().decisions());
  EXPECT_THAT(files(), ElementsAre("table")) << "no temporary file is left";
}

TEST_F(TableFile, AMissingFileIsAnEmptyTable) {
  const auto loaded = load_guard_table(path());
  ASSERT_TRUE(loaded);
  EXPECT_THAT(loaded->decisions(), IsEmpty());
}

TEST_F(TableFile, SavingKeepsDecisionsOfOtherScopes) {
  ASSERT_TRUE(save_guard_table(some_table(), path()).ok());
  GuardTableFile file(path(), true);
  file.add({kScope, {ReduceOp::kMin, 5}}, {TuningChoice::kHips, 1, 2});
  file.save();
  const auto loaded = load_guard_table(path());
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->decisions().size(), some_table().decisions().size() + 1);
}

TEST_F(TableFile, AnUnchangedTableIsNotWritten) {
  ASSERT_TRUE(save_guard_table(some_table(), path()).ok());
  GuardTableFile file(path(), true);
  file.add({kScope, kSmall}, {TuningChoice::kNative, 3000, 2000});
  std::filesystem::remove(path());
  file.save();
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(TableFile, ADamagedFileGivesOneWarningAndStaysUnchanged) {
  const std::string damaged = some_table().text() + "hosts=1x4 transport=memory speed=9\n";
  write(damaged);
  GuardTableFile file(path(), true);
  EXPECT_THAT(file.table().decisions(), IsEmpty());
  EXPECT_THAT(file.table().decisions(), IsEmpty());
  file.add({kScope, kSmall}, {TuningChoice::kHips, 1, 2});
  file.save();
  EXPECT_EQ(read(), damaged);
  EXPECT_THAT(log_, AllOf(HasSubstr(path() + ": line 6: expected mpi=..., found \"speed=9\""),
                          HasSubstr("correct it, delete it, or name another file in HIPS_GUARD_TABLE")));
  EXPECT_EQ(std::ranges::count(log_, '\n'), 1) << log_;
  // The other processes of the job do not warn.
  log_.clear();
  GuardTableFile other(path(), false);
  EXPECT_THAT(other.table().decisions(), IsEmpty());
  EXPECT_EQ(log_, "");
}

TEST_F(TableFile, AFileOfAnotherKindStaysUnchanged) {
  for (const std::string& foreign : {std::string("#!/bin/sh\nexit 0\n"), std::string(), std::string(5, '\0'),
                                     std::string("# HiPS guard table 2\n")}) {
    write(foreign);
    log_.clear();
    GuardTableFile file(path(), true);
    file.add({kScope, kSmall}, {TuningChoice::kHips, 1, 2});
    file.save();
    EXPECT_EQ(read(), foreign);
    EXPECT_THAT(log_, HasSubstr("line 1: not a guard table"));
  }
  // A directory is not a table.
  std::filesystem::remove(path());
  std::filesystem::create_directory(path());
  EXPECT_FALSE(load_guard_table(path()));
}

TEST_F(TableFile, AWarningNamesAFileThatCannotBeWritten) {
  const std::string nowhere = folder_ + "/no/such/table";
  GuardTableFile file(nowhere, true);
  file.add({kScope, kSmall}, {TuningChoice::kHips, 1, 2});
  file.save();
  EXPECT_THAT(log_, AllOf(HasSubstr(nowhere), HasSubstr("No such file or directory")));
}

TEST(GuardTable, ParsingNamesTheLineOfEveryDamage) {
  const std::string good = some_table().text();
  const auto error = [](const std::string& text) {
    const auto table = GuardTable::parse(text, "T");
    return table ? std::string("none") : table.error().message;
  };
  EXPECT_EQ(error(good), "none");
  const std::string line =
      "hosts=2x4 transport=memory mpi=M op=sum bytes=512-1023 winner=hips hips_ns=900 host_ns=1500\n";
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = line;
    changed.replace(changed.find(from), from.size(), to);
    return error("# HiPS guard table 1\n" + changed);
  };
  EXPECT_EQ(with("winner=hips", "winner=hips"), "none");
  EXPECT_THAT(with("op=sum", "op=add"),
              HasSubstr("guard table T: line 2: unknown op=add; example of a line: hosts="));
  EXPECT_THAT(with("512-1023", "512-1024"), HasSubstr("line 2: invalid bytes=512-1024"));
  EXPECT_THAT(with("512-1023", "0-0"), HasSubstr("invalid bytes=0-0"));
  EXPECT_THAT(with("winner=hips", "winner=me"), HasSubstr("invalid winner=me (valid: hips, host)"));
  EXPECT_THAT(with("=900", "=-900"), HasSubstr("invalid hips_ns=-900"));
  EXPECT_THAT(with("=900", "=1e3"), HasSubstr("invalid hips_ns=1e3"));
  EXPECT_THAT(with("=1500", "=1500 x"), HasSubstr("unexpected \"x\" after host_ns"));
  EXPECT_THAT(with("hosts=2x4 ", ""), HasSubstr("expected hosts=..., found \"transport=memory\""));
  EXPECT_THAT(with("1500\n", "15"), HasSubstr("the line is truncated"));
  EXPECT_THAT(error("# HiPS guard table 1\n" + line + line),
              HasSubstr("line 3: an earlier line has the same key"));
}

TEST(GuardTable, NoInputCrashesTheReader) {
  std::mt19937_64 random = seeded();
  const std::string good = some_table().text();
  for (std::size_t cut = 0; cut < good.size(); ++cut) (void)GuardTable::parse(good.substr(0, cut), "T");
  for (int round = 0; round < 5000; ++round) {
    std::string text = good;
    for (std::uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          text.erase(at, 1 + random() % 9);
          break;
        default:
          text.insert(at, 1, static_cast<char>(random() % 256));
      }
      if (text.empty()) break;
    }
    const auto table = GuardTable::parse(text, "T");
    EXPECT_THAT(table ? "guard table T: line " : table.error().message, HasSubstr("guard table T: line "));
  }
}

TEST(GuardTable, NodesAreCountedInTheOrderOfTheirFirstRanks) {
  EXPECT_EQ(nodes_text({"a", "a", "a"}), "1x3");
  EXPECT_EQ(nodes_text({"a", "b", "a", "b", "c"}), "2x2,1x1");
  EXPECT_EQ(nodes_text({"c", "a", "a", "b", "b"}), "1x1,2x2");
}

TEST(GuardMode, ATopologyOfSeveralNodesIsTheWiringAndAPlanIsAWish) {
  const auto mode_on_nodes = [](const char* name, const char* value) {
    const std::array<Setting, 1> settings{{{name, value, ""}}};
    return guard_mode_of(load_config(settings).config, false);
  };
  EXPECT_TRUE(mode_on_nodes("HIPS_TOPO", "rail:2,2").has_trials);
  EXPECT_THAT(mode_on_nodes("HIPS_ALGORITHM", "ring").text, HasSubstr("off: a plan is named"));
  EXPECT_FALSE(mode_on_nodes("HIPS_PATTERN", "ring").has_trials);
}

TEST(Adoption, ComesAfterHundredsOfShortCallsOnANodeThousandsBetweenNodesOrOneLongCall) {
  for (const bool one_node : {true, false}) {
    for (const int size : {2, 3, 9, 64}) {
      for (const std::uint64_t bytes :
           {std::uint64_t{0}, std::uint64_t{8}, std::uint64_t{4096}, std::uint64_t{1} << 30}) {
        Adoption adoption(size, one_node);
        int calls = 1;
        for (adoption.add(bytes); !adoption.is_due() && calls < 100'000; ++calls) adoption.add(bytes);
        EXPECT_LE(calls, one_node ? 1'000 : 5'000) << size << " ranks, " << bytes << " bytes";
        if (bytes == std::uint64_t{1} << 30) {
          EXPECT_EQ(calls, 1);
        }
        if (bytes <= 8) {
          EXPECT_GE(calls, one_node ? 100 : 1'000);
        }
      }
    }
  }
}

}  // namespace
}  // namespace hips::mpi
