// The guarantees of a table, in a simulated network that delivers in any order that its links allow.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/choices.hpp"
#include "tests/ps/simulated_table.hpp"
#include "tests/ps/workload.hpp"

namespace hips::ps {
namespace {

using test::counters;
using test::num_seeds;
using test::SimulatedTable;
using test::Workload;

void expect_guarantees(const Workload::Shape& shape) {
  for (std::uint64_t i = 0; i < num_seeds(); ++i) {
    const std::uint64_t seed = hips::test::seed() + i;
    Workload workload(shape, seed);
    const auto broken = workload.run();
    ASSERT_FALSE(broken) << *broken << "; seed " << seed;
  }
}

TEST(Protocol, CallsThatAreWaitedForAreLinearizableWhileRowsMove) {
  expect_guarantees({.nodes = 2, .ranks_per_node = 1, .num_keys = 2});
  expect_guarantees({.nodes = 3, .ranks_per_node = 2, .num_keys = 4, .calls = 30});
  expect_guarantees({.nodes = 4, .ranks_per_node = 1, .num_keys = 3, .calls = 40, .localize = 0.6});
}

TEST(Protocol, OutstandingCallsKeepEachWorkersOrderPerKey) {
  expect_guarantees({.nodes = 2, .ranks_per_node = 2, .num_keys = 2, .outstanding = 5});
  expect_guarantees(
      {.nodes = 4, .ranks_per_node = 1, .num_keys = 3, .outstanding = 8, .calls = 50, .localize = 0.4});
}

TEST(Protocol, IntentsRightOrWrongChangeNoResult) {
  expect_guarantees({.nodes = 2, .ranks_per_node = 2, .num_keys = 2, .calls = 80, .intent = 0.2});
  expect_guarantees({.nodes = 3, .ranks_per_node = 1, .num_keys = 3, .calls = 80, .intent = 0.3});
  expect_guarantees({.nodes = 4,
                     .ranks_per_node = 1,
                     .num_keys = 3,
                     .outstanding = 6,
                     .calls = 60,
                     .localize = 0.4,
                     .intent = 0.2});
}

TEST(Protocol, NicsThatDelayReorderAndRefuseChangeNoResult) {
  expect_guarantees({.nodes = 2, .ranks_per_node = 1, .num_keys = 2, .calls = 40, .faulty = true});
  expect_guarantees({.nodes = 3,
                     .ranks_per_node = 1,
                     .num_keys = 3,
                     .outstanding = 6,
                     .calls = 30,
                     .localize = 0.4,
                     .intent = 0.2,
                     .faulty = true});
}

TEST(Protocol, UntilOthersHearOfADeathTheyKeepAllThatIsPromised) {
  expect_guarantees({.nodes = 2, .ranks_per_node = 2, .num_keys = 3, .kills = true});
  expect_guarantees(
      {.nodes = 3, .ranks_per_node = 2, .num_keys = 4, .calls = 30, .localize = 0.4, .kills = true});
  expect_guarantees({.nodes = 4,
                     .ranks_per_node = 1,
                     .num_keys = 3,
                     .outstanding = 6,
                     .calls = 50,
                     .localize = 0.4,
                     .intent = 0.2,
                     .kills = true});
}

TEST(Protocol, ARankAsksTheOwnerThatAnsweredItBeforeAndTheHomeWhenItHasChanged) {
  std::mt19937_64 random(hips::test::seed());
  SimulatedTable table(4, 1, counters(4), 64, 4096);
  Key key = 0;
  while (table.places().home_of(key) != 0) ++key;
  const auto call = [&](Rank rank, MailKind kind) {
    std::vector<std::uint64_t> row(4, 0);
    row[static_cast<std::size_t>(rank)] = 1;
    TableCall made{.kind = kind, .out = reinterpret_cast<std::byte*>(row.data()), .num_keys = 1};
    const std::uint32_t position = 0;
    if (table.use(rank, kind, key, made.out) == Found::kAbsent)
      table.client(rank).ask(made, std::span(&key, 1), std::span(&position, 1), made.out);
    int messages = 0;
    for (; !table.idle(); ++messages) table.deliver(random);
    EXPECT_TRUE(made.done);
    return messages;
  };
  (void)call(1, MailKind::kLocalize);
  EXPECT_EQ(call(3, MailKind::kPush), 3);  // by way of the home
  EXPECT_EQ(call(3, MailKind::kPush), 2);
  EXPECT_EQ(call(3, MailKind::kPull), 2);
  (void)call(2, MailKind::kLocalize);
  EXPECT_EQ(call(3, MailKind::kPush), 4);  // the last owner, the home, the owner, and back
  EXPECT_EQ(call(3, MailKind::kPush), 2);
  (void)call(0, MailKind::kLocalize);
  EXPECT_EQ(call(3, MailKind::kPush), 3);
  EXPECT_EQ(call(3, MailKind::kPull), 2);
}

TEST(Protocol, AFullHomeTakesIntentsAndGivesUnusedRowsAway) {
  std::mt19937_64 random(hips::test::seed());
  constexpr std::uint64_t kMostRows = 1;
  SimulatedTable table(2, 1, counters(1), kMostRows, 4096);
  std::vector<Key> keys;
  for (Key key = 0; keys.size() < 3; ++key)
    if (table.places().home_of(key) == 0) keys.push_back(key);
  const auto call = [&](Rank rank, MailKind kind, Key key, std::uint64_t value) {
    TableCall made{.kind = kind, .out = reinterpret_cast<std::byte*>(&value), .num_keys = 1};
    const std::uint32_t position = 0;
    if (table.use(rank, kind, key, made.out) == Found::kAbsent) {
      table.client(rank).ask(made, std::span(&key, 1), std::span(&position, 1), made.out);
      EXPECT_EQ(table.client(rank).num_moving(), kind == MailKind::kLocalize ? 1 : 0);
    }
    while (!table.idle()) table.deliver(random);
    EXPECT_TRUE(made.done);
    EXPECT_EQ(table.client(rank).num_moving(), 0);
    return value;
  };
  (void)call(0, MailKind::kPush, keys[0], 5);
  ASSERT_EQ(table.store(0).num_rows(), kMostRows);
  table.client(0).tell_intent(std::span(&keys[2], 1), 0, 1);
  while (!table.idle()) table.deliver(random);
  (void)call(1, MailKind::kLocalize, keys[1], 0);
  EXPECT_EQ(call(1, MailKind::kPull, keys[1], 7), 0);
  EXPECT_EQ(call(1, MailKind::kPull, keys[0], 7), 5);
  EXPECT_EQ(table.store(0).num_rows(), kMostRows);
  EXPECT_EQ(table.store(1).num_rows(), 1);
}

TEST(Protocol, AnIntentLastsAsLongAsTheLongestOfARankHoweverOftenItIsTold) {
  Intents intents(2);
  for (int repeat = 0; repeat < 3; ++repeat) {
    intents.add(0, 7, 0, 2);
    intents.add(0, 7, 0, 4);
    intents.add(0, 7, 0, 3);
  }
  intents.add(1, 7, 0, 3);
  EXPECT_EQ(intents.take_changes().begun, std::vector<Key>{7});
  for (std::uint64_t clock = 1; clock <= 3; ++clock) {
    intents.advance(0, clock);
    intents.advance(1, clock);
    EXPECT_TRUE(intents.wants(7)) << clock;
    EXPECT_TRUE(intents.take_changes().ended.empty()) << clock;
  }
  intents.advance(0, 4);
  EXPECT_FALSE(intents.wants(7));
  EXPECT_EQ(intents.take_changes().ended, std::vector<Key>{7});
}

/// Workers that pull, push 1 to their own counter and end a clock, as fast as the clocks of the others allow.
class StaleWorkers {
 public:
  explicit StaleWorkers(std::uint64_t seed)
      : random_(seed),
        staleness_(random_() % 4),
        nodes_(static_cast<std::int32_t>(1 + random_() % 3)),
        ranks_per_node_(static_cast<std::int32_t>(1 + random_() % 3)),
        workers_(static_cast<std::size_t>(nodes_ * ranks_per_node_)),
        table_(nodes_, ranks_per_node_, counters(static_cast<std::uint32_t>(workers_.size())), 8, 4096) {}

  std::optional<std::string> run() {
    std::vector<std::size_t> ready;
    while (true) {
      ready.clear();
      for (std::size_t w = 0; w < workers_.size(); ++w)
        if (can_go_on(w)) ready.push_back(w);
      if (ready.empty() && table_.idle()) break;
      if (ready.empty() || (!table_.idle() && random_() % 2 == 0)) {
        table_.deliver(random_);
      } else if (auto broken = go_on(ready[random_() % ready.size()])) {
        return broken;
      }
    }
    for (const Worker& worker : workers_)
      if (worker.clock != kClocks) return "a worker waits for ever";
    return std::nullopt;
  }

 private:
  static constexpr std::uint64_t kClocks = 12;
  static constexpr Key kKey = 5;
  enum class Next { kPull, kRead, kEnd };
  struct Worker {
    std::uint64_t clock = 0;
    Next next = Next::kPull;
    TableCall call;
    std::vector<std::uint64_t> row;
  };

  bool can_go_on(std::size_t w) {
    const Worker& worker = workers_[w];
    if (!worker.call.done) return false;
    const std::uint64_t all = table_.client(static_cast<Rank>(w)).all_clocks();
    return worker.next != Next::kPull || (worker.clock < kClocks && worker.clock <= all + staleness_);
  }
  void call(std::size_t w, MailKind kind) {
    Worker& worker = workers_[w];
    Client& client = table_.client(static_cast<Rank>(w));
    worker.row.assign(workers_.size(), 0);
    if (kind == MailKind::kPush) worker.row[w] = 1;
    worker.call.kind = kind;
    worker.call.num_keys = 1;
    auto* const row = worker.call.out = reinterpret_cast<std::byte*>(worker.row.data());
    const Key key = kKey;
    const std::uint32_t position = 0;
    if (table_.use(static_cast<Rank>(w), kind, key, row) == Found::kAbsent)
      client.ask(worker.call, std::span(&key, 1), std::span(&position, 1), row);
  }
  std::optional<std::string> go_on(std::size_t w) {
    Worker& worker = workers_[w];
    switch (worker.next) {
      case Next::kPull:
        for (const Worker& other : workers_)
          if (worker.clock > other.clock + staleness_) return "a worker is too far ahead";
        call(w, MailKind::kPull);
        worker.next = Next::kRead;
        break;
      case Next::kRead:
        for (std::size_t other = 0; other < workers_.size(); ++other)
          if (worker.row[other] + staleness_ < worker.clock)
            return "worker " + std::to_string(w) + " in clock " + std::to_string(worker.clock) + " reads " +
                   std::to_string(worker.row[other]) + " pushes of worker " + std::to_string(other);
        call(w, MailKind::kPush);
        worker.next = Next::kEnd;
        break;
      case Next::kEnd:
        table_.client(static_cast<Rank>(w)).tell_clock(++worker.clock);
        worker.next = Next::kPull;
        break;
    }
    return std::nullopt;
  }

  std::mt19937_64 random_;
  std::uint64_t staleness_;
  std::int32_t nodes_, ranks_per_node_;
  std::vector<Worker> workers_;
  SimulatedTable table_;
};

TEST(Protocol, AWorkerIsAtMostTheStalenessAheadAndSeesAllThatIsOlder) {
  for (std::uint64_t i = 0; i < num_seeds(); ++i) {
    const std::uint64_t seed = hips::test::seed() + i;
    const auto broken = StaleWorkers(seed).run();
    ASSERT_FALSE(broken) << *broken << "; seed " << seed;
  }
}

}  // namespace
}  // namespace hips::ps
