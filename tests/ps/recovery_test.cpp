// Tables that go on after ranks have died, of whole processes: what is left of the rows.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <hips/hips.hpp>
#include <hips/ps.hpp>

#include "tests/choices.hpp"
#include "tests/ps/places.hpp"

namespace {

using hips::Communicator;
using hips::ps::Key;
using hips::ps::Table;
using hips::test::RankProcesses;
using hips::test::Ready;

constexpr std::uint64_t kNumKeys = 300;
constexpr std::size_t kNumRanks = 4;

/// A rank that pushes ones to a column of its own, and knows what must be in it.
class Pusher {
 public:
  Pusher(int rank, std::uint64_t seed)
      : rank_(static_cast<std::size_t>(rank)),
        random_(seed + static_cast<std::uint64_t>(rank)),
        comm_(Communicator::from_environment()) {
    table_.emplace(comm_,
                   hips::ps::TableOptions<std::int64_t>{.num_keys = kNumKeys, .row_length = kNumRanks});
  }
  [[nodiscard]] int num_ranks() const { return comm_.size(); }
  [[nodiscard]] const std::string& wrong() const { return wrong_; }

  /// Until a call fails, or `calls` calls. True if none has failed.
  bool push(int calls, const Ready& ready) {
    try {
      for (int call = 0; calls < 0 || call < calls; ++call) {
        step();
        ready();
      }
      comm_.barrier();
      return true;
    } catch (const hips::Error&) {
      return false;
    }
  }

  /// With the ranks that are left. `num_lost`: of which this rank knows nothing.
  void recover(std::uint64_t& num_lost) {
    num_lost = 0;
    while (true) {
      comm_ = comm_.shrink();
      try {
        std::uint64_t more = 0;
        Table<std::int64_t> made = table_->recover(comm_, &more);
        table_.emplace(std::move(made));
        num_lost += more;
        compare(num_lost);
        comm_.barrier();  // then all have compared, and the others' pushes go on
        return;
      } catch (const hips::Error& error) {
        // Another rank has died meanwhile.
        if (error.status().code != hips::Code::kPeerLost) throw;
      }
    }
  }

 private:
  void step() {
    std::set<Key> chosen;
    for (auto num = 1 + random_() % 8; num > 0; --num) chosen.insert(random_() % kNumKeys);
    const std::vector<Key> keys(chosen.begin(), chosen.end());
    std::vector<std::int64_t> rows(keys.size() * kNumRanks);
    if (random_() % 4 == 0) table_->localize(keys);
    if (random_() % 4 == 0) {
      table_->pull(keys, rows);
      for (std::size_t i = 0; i < keys.size(); ++i)
        if (rows[i * kNumRanks + rank_] != pushed_[keys[i]])
          wrong_ = "a pull sees another number than this rank has pushed";
      std::ranges::fill(rows, 0);
    }
    for (std::size_t i = 0; i < keys.size(); ++i) rows[i * kNumRanks + rank_] = 1;
    uncertain_ = chosen;
    table_->push(keys, rows);
    uncertain_.clear();
    for (const Key key : keys) ++pushed_[key];
  }

  void compare(std::uint64_t num_lost) {
    std::vector<Key> keys(kNumKeys);
    std::iota(keys.begin(), keys.end(), 0);
    std::vector<std::int64_t> rows(kNumKeys * kNumRanks);
    table_->pull(keys, rows);
    std::uint64_t seen = 0;
    for (const Key key : keys) {
      const std::span row = std::span(rows).subspan(key * kNumRanks, kNumRanks);
      const std::int64_t mine = row[rank_];
      const bool is_right = mine == pushed_[key] || (uncertain_.contains(key) && mine == pushed_[key] + 1);
      const bool is_lost = std::ranges::count(row, 0) == kNumRanks;
      if (!is_right && !is_lost)
        wrong_ = "key " + std::to_string(key) + " has " + std::to_string(mine) + " in place of " +
                 std::to_string(pushed_[key]);
      if (!is_right && is_lost) ++seen;
      pushed_[key] = mine;
    }
    if (seen > num_lost)
      wrong_ = std::to_string(seen) + " rows are lost; told were " + std::to_string(num_lost);
    uncertain_.clear();
  }

  std::size_t rank_;
  std::mt19937_64 random_;
  Communicator comm_;
  std::optional<Table<std::int64_t> > table_;
  std::vector<std::int64_t> pushed_ = std::vector<std::int64_t>(kNumKeys);
  std::set<Key> uncertain_;  ///< of a push that has not ended
  std::string wrong_;
};

TEST(Recovery, KeepsWhatHasBeenPushedToRowsThatAreLeft) {
  std::mt19937_64 random(hips::test::seed());
  const int trials = hips::test::runs_everything() ? 100 : hips::test::runs_a_sample() ? 5 : 15;
  for (int trial = 0; trial < trials && !HasFailure(); ++trial) {
    const auto at = static_cast<std::size_t>(trial) % std::size(hips::ps::test::kPlaces);
    std::vector<int> ranks(kNumRanks);
    std::iota(ranks.begin(), ranks.end(), 0);
    std::ranges::shuffle(ranks, random);
    const auto num_gone = 1 + static_cast<std::ptrdiff_t>(random() % 2);
    const std::vector<int> gone(ranks.begin(), ranks.begin() + num_gone);
    const std::uint64_t seed = random();
    // Where the rank that serves is left and nothing moves between nodes, nothing is lost.
    const bool keeps_all = at == 0 && !std::ranges::count(gone, 0);
    SCOPED_TRACE("trial " + std::to_string(trial) + ", place " + std::to_string(at) +
                 ", gone: " + testing::PrintToString(gone));
    RankProcesses processes(
        kNumRanks,
        [&](int rank, const Ready& ready) {
          Pusher pusher(rank, seed);
          std::uint64_t num_lost = 0, all_lost = 0;
          while (pusher.num_ranks() > static_cast<int>(kNumRanks) - static_cast<int>(num_gone)) {
            (void)pusher.push(-1, ready);
            pusher.recover(num_lost);
            all_lost += num_lost;
          }
          const bool goes_on = pusher.push(50, ready);
          if (!goes_on) return std::string("a call on the last table has failed");
          if (!pusher.wrong().empty()) return pusher.wrong();
          return keeps_all && all_lost > 0 ? "lost " + std::to_string(all_lost) : std::string("right");
        },
        hips::ps::test::kPlaces[at]);
    ASSERT_TRUE(processes.wait_ready());
    for (const int victim : gone) {
      std::this_thread::sleep_for(
          std::chrono::microseconds(random() % (random() % 2 == 0 ? 20'000 : 600'000)));
      processes.signal(victim, SIGKILL);
    }
    auto outcomes = processes.wait();
    for (const int victim : gone) outcomes[static_cast<std::size_t>(victim)].text = "killed";
    for (const auto& outcome : outcomes) {
      if (outcome.text == "killed") continue;
      EXPECT_FALSE(outcome.hung);
      EXPECT_EQ(outcome.text, "right");
    }
    EXPECT_THAT(hips::test::left_in_dev_shm(), testing::IsEmpty());
  }
}

TEST(Recovery, ReplicasStandInForRowsOfANodeThatIsGone) {
  const int victim = static_cast<int>(hips::test::seed() % 3);
  RankProcesses processes(
      3,
      [&](int rank, const Ready&) {
        Communicator comm = Communicator::from_environment();
        Table<float> table(comm, {.num_keys = 100, .row_length = 3, .replicas_per_node = 100});
        std::vector<Key> keys(100);
        std::iota(keys.begin(), keys.end(), 0);
        const std::vector<float> ones(300, 1);
        std::vector<float> rows(300);
        table.pull(keys, rows);
        table.intent(keys, 0, 10);
        if (!hips::ps::test::waits_until_here<float>(table, keys, rows)) return std::string("no replicas");
        comm.barrier();
        for (int clock = 0; clock < 4; ++clock) {
          table.push(keys, ones);
          table.advance_clock();
        }
        // All have what was pushed before the last clock ended.
        (void)hips::test::error_text([&] {
          comm.barrier();
          if (rank == victim) raise(SIGKILL);
          comm.barrier();
        });
        Communicator left = comm.shrink();
        std::uint64_t num_lost = 1;
        Table<float> recovered = table.recover(left, &num_lost);
        recovered.pull(keys, rows);
        left.barrier();
        if (num_lost != 0) return "lost " + std::to_string(num_lost);
        if (rows != std::vector<float>(300, 12))
          return "rows are " + std::to_string(*std::ranges::min_element(rows)) + " at least";
        return std::string("right");
      },
      {{"HIPS_TOPO", "switch:3"}});
  const auto outcomes = processes.wait();
  for (int rank = 0; rank < 3; ++rank) {
    if (rank == victim) continue;
    EXPECT_EQ(outcomes[static_cast<std::size_t>(rank)].text, "right") << rank;
  }
}

TEST(Recovery, RefusesTablesThatRanksHaveNotMadeTogether) {
  const std::string text = hips::test::run(2, [](int rank, const Ready&) {
    Communicator comm = Communicator::from_environment();
    Communicator other = comm.duplicate();
    Table<float> first(comm, {.num_keys = 10}), second(other, {.num_keys = 10});
    Communicator made = comm.duplicate();
    made.barrier();  // a recovery ends the table's communicator, on which ranks may still be making this one
    return hips::test::error_text([&] { (void)(rank == 0 ? first : second).recover(made); });
  });
  EXPECT_THAT(text, testing::StartsWith("invalid argument: table: what rank "));
}

}  // namespace
