// The races of rows that move, each in the one order of messages in which it happens.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "tests/ps/simulated_table.hpp"

namespace {

using hips::Rank;
using hips::ps::Found;
using hips::ps::Key;
using hips::ps::MailKind;
using hips::ps::TableCall;
using hips::ps::test::SimulatedTable;

/// Calls on tables of rows of one number, and messages in the order that a test wants. Row 0's home is node 0.
class Race {
 public:
  explicit Race(std::int32_t num_nodes = 4, std::int32_t ranks_per_node = 1)
      : table(num_nodes, ranks_per_node, {hips::DataType::kUint64, 1}, 64, 4096) {
    while (table.places().home_of(key) != 0) ++key;
  }

  struct Call {
    std::vector<Key> keys;
    std::vector<std::uint64_t> rows;
    TableCall call;
    [[nodiscard]] bool done() const { return call.done; }
  };

  /// Starts a call, as a rank does: what is local ends at once.
  Call& start(Rank rank, MailKind kind, std::vector<Key> keys, std::vector<std::uint64_t> rows = {}) {
    rows.resize(keys.size());
    Call& made = calls_.emplace_back();
    made.keys = std::move(keys);
    made.rows = std::move(rows);
    auto* const bytes = reinterpret_cast<std::byte*>(made.rows.data());
    made.call.kind = kind;
    made.call.out = kind == MailKind::kPull ? bytes : nullptr;
    made.call.num_keys = made.keys.size();
    std::vector<std::uint32_t> elsewhere;
    for (std::uint32_t at = 0; at < made.keys.size(); ++at)
      if (table.use(rank, kind, made.keys[at], bytes + 8 * at) == Found::kAbsent) elsewhere.push_back(at);
    if (!elsewhere.empty()) table.client(rank).ask(made.call, made.keys, elsewhere, bytes);
    return made;
  }
  Call& start(Rank rank, MailKind kind, std::uint64_t row = 0) { return start(rank, kind, {key}, {row}); }

  /// Delivers the oldest message from one rank to another.
  void deliver(Rank from, Rank to) {
    ASSERT_TRUE(table.has_mail(from, to)) << "rank " << from << " has sent nothing to rank " << to;
    table.deliver(from, to);
  }
  void finish() {
    while (!table.idle()) table.deliver(random_);
    for (const Call& call : calls_) ASSERT_TRUE(call.done());
  }
  void localize(Rank rank) {
    start(rank, MailKind::kLocalize);
    // A rank of a node tells its service first.
    finish();
    ASSERT_TRUE(is_at(rank));
  }
  /// The row is at the node of the rank, and nowhere else.
  [[nodiscard]] bool is_at(Rank rank) {
    const std::int32_t wanted = table.places().node_of[static_cast<std::size_t>(rank)];
    for (std::int32_t node = 0; node < table.places().num_nodes(); ++node)
      if ((table.store(node).row_at_rest(key) != nullptr) != (node == wanted)) return false;
    return true;
  }
  std::uint64_t value(Rank rank) {
    const Call& pulled = start(rank, MailKind::kPull);
    finish();
    return pulled.rows[0];
  }

  SimulatedTable table;
  Key key = 0;

 private:
  std::mt19937_64 random_{1};
  std::deque<Call> calls_;
};

TEST(Races, ARequestReachesAnOwnerThatGaveTheRowAway) {
  Race race;
  race.localize(1);
  race.start(3, MailKind::kPush, 1);
  race.finish();  // rank 3 knows that rank 1 has the row
  race.start(2, MailKind::kLocalize);
  race.deliver(2, 2);
  race.deliver(2, 0);
  race.deliver(0, 1);  // the row leaves
  const auto& push = race.start(3, MailKind::kPush, 10);
  race.deliver(3, 1);
  race.deliver(1, 0);  // to the home, which names the new owner
  race.deliver(0, 2);
  EXPECT_FALSE(push.done());
  race.finish();
  EXPECT_TRUE(race.is_at(2));
  EXPECT_EQ(race.value(0), 11U);
}

TEST(Races, TheNextLocalizeOvertakesTheRow) {
  Race race;
  race.localize(1);
  race.start(1, MailKind::kPush, 1);
  const auto& second = race.start(2, MailKind::kLocalize);
  race.deliver(2, 2);
  race.deliver(2, 0);
  const auto& third = race.start(3, MailKind::kLocalize);
  race.deliver(3, 3);
  race.deliver(3, 0);
  race.deliver(0, 2);                                     // to hand over what it does not have yet
  const auto& push = race.start(2, MailKind::kPush, 10);  // waits there
  race.deliver(0, 1);
  EXPECT_FALSE(second.done());
  race.deliver(1, 2);
  race.finish();
  EXPECT_TRUE(push.done() && third.done());
  EXPECT_TRUE(race.is_at(3));
  EXPECT_EQ(race.value(3), 11U);
}

TEST(Races, TheHomeItselfAsksForARow) {
  Race race;
  race.localize(1);
  race.start(1, MailKind::kPush, 1);
  const auto& localize = race.start(0, MailKind::kLocalize);
  race.deliver(0, 0);
  // From now on it is the owner for all others.
  const auto& push = race.start(3, MailKind::kPush, 10);
  race.deliver(3, 0);
  EXPECT_FALSE(push.done());
  EXPECT_FALSE(race.table.has_mail(0, 3));
  race.deliver(0, 1);
  race.deliver(1, 0);
  race.finish();
  EXPECT_TRUE(localize.done());
  EXPECT_TRUE(race.is_at(0));
  EXPECT_EQ(race.value(0), 11U);
}

TEST(Races, ASecondLocalizeOfANodeJoinsTheFirst) {
  Race race(3, 2);  // ranks 0, 2 and 4 serve
  const auto& first = race.start(2, MailKind::kLocalize);
  const auto& second = race.start(3, MailKind::kLocalize);
  race.deliver(2, 2);
  race.deliver(3, 2);
  race.deliver(2, 0);
  EXPECT_FALSE(race.table.has_mail(2, 0)) << "the home was asked twice";
  race.finish();
  EXPECT_TRUE(first.done() && second.done());
  EXPECT_TRUE(race.is_at(2));
}

TEST(Races, ACallIsAnsweredBySeveralNodesForUnsortedAndRepeatedKeys) {
  Race race;
  std::vector<Key> keys(12);
  for (Key at = 0; at < keys.size(); ++at) keys[at] = at;
  std::vector<std::uint64_t> values(12);
  for (std::uint64_t at = 0; at < values.size(); ++at) values[at] = 100 + at;
  race.start(0, MailKind::kSet, keys, values);
  race.finish();
  race.start(1, MailKind::kLocalize, {0, 1, 2});
  race.start(2, MailKind::kLocalize, {3, 4, 5});
  race.finish();
  // Some rows are with the rank, some are coming, some are on two other nodes.
  race.start(1, MailKind::kLocalize, {4, 9});
  race.deliver(1, 1);
  const auto& pull = race.start(1, MailKind::kPull, {9, 0, 4, 4, 11, 3, 0, 7, 9, 2});
  EXPECT_FALSE(pull.done());
  race.finish();
  EXPECT_EQ(pull.rows, (std::vector<std::uint64_t>{109, 100, 104, 104, 111, 103, 100, 107, 109, 102}));
}

TEST(Races, APushThatWaitsForARowHasACopyOfWhatWasPushed) {
  Race race;
  race.localize(1);
  race.start(2, MailKind::kLocalize);
  race.deliver(2, 2);
  auto& push = race.start(2, MailKind::kPush, 5);
  race.deliver(2, 0);  // the localize, before it
  push.rows[0] = 1'000'000;
  race.finish();
  EXPECT_EQ(race.value(3), 5U);
}

TEST(Races, AnAnswerThatComesTwiceIsRefused) {
  Race race;
  const auto& pull = race.start(1, MailKind::kPull, {race.key, race.key + 1, race.key});
  std::vector<std::byte> answer(sizeof(hips::ps::BatchHead) + 2 * (sizeof(hips::ps::Record) + 8));
  const hips::ps::BatchHead head{
      .kind = MailKind::kRows, .count = 2, .request = pull.call.number, .requester = 1};
  std::memcpy(answer.data(), &head, sizeof head);
  for (std::size_t i = 0; i < 2; ++i) {
    const hips::ps::Record record{.key = race.key, .position = 2};
    std::memcpy(answer.data() + sizeof head + i * (sizeof record + 8), &record, sizeof record);
  }
  std::span<const std::byte> left(answer);
  const auto status = race.table.client(1).on_mail(0, hips::value_or_throw(hips::ps::Batch::take(left, 8)));
  EXPECT_EQ(status.code, hips::Code::kMismatch);
  EXPECT_EQ(status.message, "an answer names key 2 of call 1, which has 3 and waits for 2");
}

}  // namespace
