// Tables whose rows have replicas on several nodes, of whole processes: what ranks may see of a row that all of them push to.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <hips/hips.hpp>
#include <hips/ps.hpp>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tests/choices.hpp"
#include "tests/ps/places.hpp"

namespace {

using hips::Communicator;
using hips::ps::Key;
using hips::ps::Table;
using hips::test::error_text;
using hips::test::Ready;
using hips::test::run;

constexpr int kRanks = 4;

/// On one node nothing is replicated.
template <typename Body>
void expect_right(const Body& body) {
  hips::ps::test::expect_everywhere("right", body);
}

TEST(Replicas, AreOnEveryNodeThatHasAnIntentAndGetWhatOthersPush) {
  expect_right([](int rank) -> std::string {
    Communicator comm = Communicator::from_environment();
    Table<float> table(comm, {.num_keys = 100, .row_length = 3, .replicas_per_node = 100});
    std::vector<Key> keys(100);
    std::iota(keys.begin(), keys.end(), 0);
    const std::vector<float> ones(300, 1);
    std::vector<float> rows(300);
    table.pull(keys, rows);  // keys that nobody has used are nowhere
    table.intent(keys, 0, 10);
    if (!hips::ps::test::waits_until_here<float>(table, keys, rows)) return "no replicas";
    comm.barrier();
    for (int clock = 0; clock < 10; ++clock) {
      table.push(keys, ones);
      table.pull(keys, rows);
      for (const float value : rows)
        if (value < static_cast<float>(4 * clock + 1) || value > static_cast<float>(4 * clock + 4))
          return "clock " + std::to_string(clock) + " sees " + std::to_string(value);
      table.advance_clock();
    }
    comm.barrier();
    table.pull(keys, rows);
    if (rows != std::vector<float>(300, 40)) return "wrong rows at the end";
    // Sets and localizes take replicas back.
    table.intent(keys, 10, 20);
    table.advance_clock();
    if (rank == 3) table.set(keys, ones);
    comm.barrier();
    table.pull(keys, rows);
    if (rows != ones) return "wrong rows after set";
    comm.barrier();
    if (rank == 1) table.localize(keys);
    comm.barrier();
    table.push(keys, ones);
    table.advance_clock();
    table.pull(keys, rows);
    return rows == std::vector<float>(300, 5) ? "right" : "wrong rows after localize";
  });
}

/// How often a rank pushes to a row in a clock.
std::uint64_t pushes_of(std::uint64_t seed, std::size_t rank, std::uint64_t clock, Key key) {
  return std::mt19937_64(seed ^ (clock << 40U | rank << 32U | key))() % 3;
}

/// Every rank pushes to its own element of random rows, with random intents, localizes and clocks; "right", or what it saw.
std::string saw_what_it_may(int rank, std::uint64_t seed) {
  constexpr Key kKeys = 6;
  std::mt19937_64 shape(seed), random(seed * 10 + static_cast<std::uint64_t>(rank));
  const std::uint64_t staleness = shape() % 3, num_clocks = 12;
  const std::uint64_t replicas = 1 + shape() % kKeys;
  const bool moves = shape() % 2 == 0;
  Communicator comm = Communicator::from_environment();
  Table<std::uint64_t> table(
      comm, {.num_keys = kKeys, .row_length = kRanks, .staleness = staleness, .replicas_per_node = replicas});
  const auto me = static_cast<std::size_t>(rank);
  std::vector<std::vector<std::uint64_t>> seen(kKeys, std::vector<std::uint64_t>(kRanks));
  std::vector<std::uint64_t> own(kKeys), row(kRanks), one(kRanks);
  one[me] = 1;
  // Pushes of a rank in clocks before `end`.
  const auto until = [&](std::size_t r, Key key, std::uint64_t end) {
    std::uint64_t sum = 0;
    for (std::uint64_t clock = 0; clock < std::min(end, num_clocks); ++clock)
      sum += pushes_of(seed, r, clock, key);
    return sum;
  };
  const auto look = [&](Key key, std::uint64_t clock) -> std::string {
    table.pull(std::vector<Key>{key}, row);
    for (std::size_t r = 0; r < kRanks; ++r) {
      const std::uint64_t least =
          std::max(seen[key][r], until(r, key, clock > staleness ? clock - staleness : 0));
      const std::uint64_t most = r == me ? own[key] : until(r, key, clock + staleness + 1);
      if (row[r] < least || row[r] > most || (r == me && row[r] != own[key]))
        return "seed " + std::to_string(seed) + ": rank " + std::to_string(rank) + " in clock " +
               std::to_string(clock) + " sees " + std::to_string(row[r]) + " of rank " + std::to_string(r) +
               " in key " + std::to_string(key) + ", not " + std::to_string(least) + " to " +
               std::to_string(most);
      seen[key][r] = row[r];
    }
    return {};
  };
  for (std::uint64_t clock = 0; clock < num_clocks; ++clock) {
    if (random() % 2 == 0) {
      const std::uint64_t start = clock + random() % 3;
      table.intent(std::vector<Key>{random() % kKeys, random() % kKeys}, start, start + random() % 4);
    }
    for (Key key = 0; key < kKeys; ++key) {
      if (moves && random() % 10 == 0) table.localize(std::vector<Key>{key});
      for (std::uint64_t left = pushes_of(seed, me, clock, key); left > 0; --left) {
        table.push(std::vector<Key>{key}, one);
        ++own[key];
        if (random() % 2 != 0) continue;
        if (std::string wrong = look(key, clock); !wrong.empty()) return wrong;
      }
    }
    if (std::string wrong = look(random() % kKeys, clock); !wrong.empty()) return wrong;
    table.advance_clock();
  }
  // Ranks that ended their last clock `staleness` clocks before the slowest did have not waited for it.
  for (std::uint64_t i = 0; i < staleness; ++i) table.advance_clock();
  for (Key key = 0; key < kKeys; ++key)
    if (std::string wrong = look(key, num_clocks + staleness); !wrong.empty()) return wrong;
  return "right";
}

TEST(Replicas, ShowOwnPushesAndNeverLessThanClocksPromise) {
  const std::uint64_t seed = hips::test::seed() % 1'000'000;
  const int trials = hips::test::runs_everything() ? 200 : hips::test::runs_a_sample() ? 2 : 8;
  for (int i = 0; i < trials; ++i)
    expect_right([&](int rank) { return saw_what_it_may(rank, seed + static_cast<std::uint64_t>(i)); });
}

// The owner's rank sets rows in place while the service copies them to the other node.
TEST(Replicas, ShowASetThatTookPlaceWhileTheyWereMade) {
  const int rounds = hips::test::runs_a_sample() ? 5 : 30;
  const std::string text =
      run(2,
          [&](int rank, const Ready&) -> std::string {
            Communicator comm = Communicator::from_environment();
            for (int round = 0; round < rounds; ++round) {
              Table<float> table(comm, {.num_keys = 3000, .replicas_per_node = 3000});
              std::vector<Key> keys(3000);
              std::iota(keys.begin(), keys.end(), 0);
              std::vector<float> rows(3000, 1);
              if (rank == 0) table.localize(keys);
              comm.barrier();
              table.intent(keys, 0, 1);
              if (rank == 0) {
                std::this_thread::sleep_for(std::chrono::microseconds(20 * round));
                // One by one, from the last: what is copied last may be set first.
                for (std::size_t i = keys.size(); i-- > 0;)
                  table.set(std::span(keys).subspan(i, 1), std::span(rows).subspan(i, 1));
              }
              comm.barrier();
              table.pull(keys, rows);
              const auto old = std::ranges::count(rows, 0.0F);
              if (old > 0) return "round " + std::to_string(round) + ": " + std::to_string(old) + " old rows";
              comm.barrier();
            }
            return "right";
          },
          {{"HIPS_TOPO", "switch:2"}});
  EXPECT_EQ(text, "right");
}

TEST(Replicas, EndWithARankThatDies) {
  for (const char* topology : {"switch:4", "switch:2/2"}) {
    hips::test::RankProcesses ranks(kRanks,
                                    [](int rank, const Ready&) -> std::string {
                                      Communicator comm = Communicator::from_environment();
                                      Table<float> table(comm, {.num_keys = 50, .replicas_per_node = 50});
                                      std::vector<Key> keys(50);
                                      std::iota(keys.begin(), keys.end(), 0);
                                      std::vector<float> rows(50, 1);
                                      table.intent(keys, 0, 1000);
                                      return error_text([&] {
                                        for (int clock = 0; clock < 1000; ++clock) {
                                          if (rank == 1 && clock == 20) std::_Exit(9);
                                          table.push(keys, rows);
                                          table.advance_clock();
                                        }
                                      });
                                    },
                                    {{"HIPS_TOPO", topology}, {"HIPS_DEAD_AFTER", "2s"}});
    const auto outcomes = ranks.wait();
    for (const int rank : {0, 2, 3}) {
      EXPECT_FALSE(outcomes[static_cast<std::size_t>(rank)].hung);
      EXPECT_THAT(outcomes[static_cast<std::size_t>(rank)].text, testing::HasSubstr("rank 1")) << topology;
    }
  }
}

TEST(Replicas, AreOnlyOfRowsThatPushesAddTo) {
  const std::string text = run(2, [](int, const Ready&) {
    Communicator comm = Communicator::from_environment();
    return error_text([&] {
      const Table<float> table(comm,
                               {.num_keys = 10, .update = hips::ReduceOp::kMax, .replicas_per_node = 10});
    });
  });
  EXPECT_THAT(text,
              testing::HasSubstr("replicas_per_node is 10, and update is max; only rows with update sum"));
}

}  // namespace
