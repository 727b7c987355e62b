// Ranks that go on after others have died: Communicator::shrink().

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <hips/hips.hpp>

#include "tests/choices.hpp"
#include "tests/comm/rank_processes.hpp"
#include "tests/comm/whole_ranks.hpp"
#include "tests/pipe_signal.hpp"

namespace {

using hips::ReduceOp;
using hips::test::Environment;
using hips::test::Outcome;
using hips::test::RankProcesses;
using hips::test::Ready;
using testing::IsEmpty;
using namespace std::chrono_literals;

/// What a rank does. All ranks that are left come to the same `num_left`.
struct Plan {
  int num_left;           ///< ranks that neither die nor give up
  std::set<int> give_up;  ///< they destroy the communicator when it has failed, and end
  std::size_t count;
  bool on_two_hosts;
};

/// Adds until a call fails; checks each result. The ranks of the communicator, as bits.
std::int64_t add_until_failure(hips::Communicator& comm, int rank, std::size_t count, int calls,
                               const Ready& ready) {
  std::vector<std::int64_t> in(count), out(count);
  std::int64_t ranks = 0;
  for (int call = 0; calls < 0 || call < calls; ++call) {
    for (std::size_t i = 0; i < count; ++i)
      in[i] = (std::int64_t{1} << rank) + call * static_cast<std::int64_t>(i) * 1024;
    try {
      comm.allreduce<std::int64_t>(in, out, ReduceOp::kSum);
    } catch (const hips::Error&) {
      return calls < 0 ? ranks : -1;
    }
    ranks = out[0];
    const std::int64_t size = comm.size();
    if (std::popcount(static_cast<std::uint64_t>(ranks)) != size) return -1;
    for (std::size_t i = 0; i < count; ++i)
      if (out[i] != ranks + size * call * static_cast<std::int64_t>(i) * 1024) return -1;
    ready();
  }
  return ranks;
}

std::string go_on(int rank, const Plan& plan, const Ready& ready) {
  if (plan.on_two_hosts && rank % 2 == 1) hips::test::move_to_another_host();
  auto comm = hips::Communicator::from_environment();
  while (comm.size() > plan.num_left) {
    if (add_until_failure(comm, rank, plan.count, -1, ready) < 0) return "wrong sum";
    if (plan.give_up.contains(rank)) return "given up";
    comm = comm.shrink();
  }
  return std::to_string(add_until_failure(comm, rank, plan.count, 3, ready));
}

TEST(Shrink, RanksThatAreLeftGoOnWhateverHappensToTheOthers) {
  std::mt19937_64 random(hips::test::seed());
  struct Shape {
    int num_ranks;
    const char* topology;
  };
  constexpr Shape kShapes[] = {{2, ""},           {4, ""}, {9, "bcube:3,1"}, {4, "torus:2x2"},
                               {4, "switch:2/2"}, {6, ""}, {6, "switch:2/3"}};
  const int trials = hips::test::runs_everything() ? 200 : hips::test::runs_a_sample() ? 6 : 12;
  for (int trial = 0; trial < trials && !HasFailure(); ++trial) {
    const Shape shape = kShapes[random() % std::size(kShapes)];
    std::vector<int> ranks(static_cast<std::size_t>(shape.num_ranks));
    std::iota(ranks.begin(), ranks.end(), 0);
    std::ranges::shuffle(ranks, random);
    const auto num_gone = 1 + random() % (ranks.size() - 1);
    const std::vector<int> gone(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(num_gone));
    const std::vector<int> left(ranks.begin() + static_cast<std::ptrdiff_t>(num_gone), ranks.end());
    Plan plan{.num_left = static_cast<int>(left.size()),
              .give_up = {},
              .count = 1 + random() % 64,
              .on_two_hosts = false};
    if (random() % 3 == 0) plan.count *= 1000;
    // The first is killed, so that the others come to an end.
    for (std::size_t i = 1; i < gone.size(); ++i)
      if (random() % 4 == 0) plan.give_up.insert(gone[i]);
    plan.on_two_hosts = geteuid() == 0 && random() % 3 == 0;
    Environment environment{{"HIPS_TRANSPORT", random() % 2 == 0 ? "auto" : "tcp"}, {"HIPS_LOG", "error"}};
    if (*shape.topology != '\0' && !plan.on_two_hosts) environment["HIPS_TOPO"] = shape.topology;
    SCOPED_TRACE("trial " + std::to_string(trial) + ": " + std::to_string(shape.num_ranks) + " ranks, " +
                 shape.topology + (plan.on_two_hosts ? ", two hosts" : "") + ", gone: " +
                 testing::PrintToString(gone) + ", give up: " + testing::PrintToString(plan.give_up));
    RankProcesses processes(
        shape.num_ranks, [&](int rank, const Ready& ready) { return go_on(rank, plan, ready); }, environment);
    ASSERT_TRUE(processes.wait_ready());
    for (const int victim : gone) {
      // Some moments are within the shrinking after the last death, which takes up to half a second.
      std::this_thread::sleep_for(
          std::chrono::microseconds(random() % 2 == 0 ? random() % 5'000 : random() % 600'000));
      if (!plan.give_up.contains(victim)) processes.signal(victim, SIGKILL);
    }
    const auto outcomes = processes.wait();
    std::int64_t expected = 0;
    for (const int rank : left) expected += std::int64_t{1} << rank;
    for (const int rank : left) {
      const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
      EXPECT_FALSE(outcome.hung) << "rank " << rank;
      EXPECT_TRUE(outcome.exited && outcome.exit_code == 0)
          << "rank " << rank << ", signal " << outcome.signal << outcome.text;
      EXPECT_EQ(outcome.text, std::to_string(expected)) << "rank " << rank;
    }
    EXPECT_THAT(hips::test::left_in_dev_shm(), IsEmpty());
  }
}

TEST(Shrink, LeavesOutRanksThatHaveLeftAndKeepsTheOrder) {
  const std::string text = hips::test::run(5, [](int rank, const Ready&) {
    auto comm = hips::Communicator::from_environment();
    comm.barrier();
    if (rank == 0 || rank == 3) return std::string("1 -> 0 of 3, 2 -> 1, 4 -> 2");
    auto few = comm.shrink();
    std::vector<std::int32_t> all(static_cast<std::size_t>(few.size()));
    few.allgather<std::int32_t>(std::vector<std::int32_t>{rank}, all);
    return few.size() == 3 && all == std::vector<std::int32_t>{1, 2, 4}
               ? std::string("1 -> 0 of 3, 2 -> 1, 4 -> 2")
               : testing::PrintToString(all);
  });
  EXPECT_EQ(text, "1 -> 0 of 3, 2 -> 1, 4 -> 2");
}

TEST(Shrink, WorksAfterAnAbortAndOnPartsAndOnOneRank) {
  const std::string text = hips::test::run(4, [](int rank, const Ready&) {
    auto comm = hips::Communicator::from_environment();
    auto half = comm.split(rank % 2);
    if (rank < 2) half->abort("enough");
    const std::string error = hips::test::error_text([&] { half->barrier(); });
    auto again = half->shrink();
    std::int32_t ranks = 1;
    again.allreduce(std::span(&ranks, 1), ReduceOp::kSum);
    auto alone = comm.split(rank);
    auto one = alone->shrink();
    comm.barrier();  // has not failed
    return error.substr(0, 8) + std::to_string(ranks) + std::to_string(one.size());
  });
  EXPECT_EQ(text, "aborted:21");
}

TEST(Shrink, FindsItsHubWhereTheNextOneDiesWhileTheLastOneLeaves) {
  constexpr int kTrials = 6;
  for (int trial = 0; trial < kTrials && !HasFailure(); ++trial) {
    RankProcesses processes(3, [](int rank, const Ready& ready) {
      std::optional<hips::Communicator> comm = hips::Communicator::from_environment();
      comm->barrier();
      ready();
      // Rank 1 is stopped meanwhile, so rank 0 waits for its answer until it has died.
      std::this_thread::sleep_for(300ms);
      if (rank == 0) comm.reset();
      std::this_thread::sleep_for(400ms);
      return rank == 2 ? std::to_string(comm->shrink().size()) : std::string();
    });
    ASSERT_TRUE(processes.wait_ready());
    processes.signal(1, SIGSTOP);
    std::this_thread::sleep_for(450ms);
    processes.signal(1, SIGKILL);
    const auto outcomes = processes.wait();
    EXPECT_FALSE(outcomes[2].hung);
    EXPECT_EQ(outcomes[2].text, "1");
  }
}

TEST(Shrink, DoesNotWaitForARankThatHasDestroyedThePartAndGoesOn) {
  // Of a shared segment, and with a control group of its own.
  for (const Environment& environment : {Environment{}, Environment{{"HIPS_TOPO", "switch:4"}}}) {
    RankProcesses processes(
        4,
        [](int rank, const Ready& ready) {
          auto comm = hips::Communicator::from_environment();
          std::optional<hips::Communicator> part = comm.split(0);
          part->barrier();
          if (rank == 1) {
            part.reset();
            ready();
            std::this_thread::sleep_for(2s);
            return std::string("2");
          }
          ready();
          while (rank == 3) pause();  // until it is killed
          (void)hips::test::error_text([&] { part->barrier(); });
          return std::to_string(part->shrink().size());
        },
        environment);
    ASSERT_TRUE(processes.wait_ready());
    processes.signal(3, SIGKILL);
    auto outcomes = processes.wait();
    outcomes.erase(outcomes.begin() + 3);
    EXPECT_EQ(hips::test::same_text(outcomes), "2");
  }
}

TEST(Shrink, EndsAtTheUsersDeadlineWhereARankDoesNotCallIt) {
  const hips::test::PipeSignal timed_out;
  const std::string text = hips::test::run(
      3,
      [&](int rank, const Ready&) {
        auto comm = hips::Communicator::from_environment();
        comm.duplicate().barrier();  // no rank is still making it
        comm.abort("enough");
        std::string error = "timed out: not all ranks that are left";
        if (rank == 1) {
          timed_out.wait(2);
        } else {
          error = hips::test::error_text([&] { (void)comm.shrink(); }).substr(0, error.size());
          timed_out.give();
        }
        return error;
      },
      {{"HIPS_TIMEOUT", "4s"}});
  EXPECT_EQ(text, "timed out: not all ranks that are left");
}

}  // namespace
