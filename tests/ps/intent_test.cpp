// The guarantees of replicas, in a simulated network that delivers in any order that its links allow.

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/choices.hpp"
#include "tests/ps/simulated_table.hpp"
#include "tests/ps/workload.hpp"

namespace hips::ps {
namespace {

using test::counters;
using test::num_seeds;
using test::SimulatedTable;

/// Workers that pull rows, push 1 to their own counter, move rows, tell intents, right or wrong, and end clocks.
class ReplicaWorkers {
 public:
  struct Shape {
    std::int32_t nodes = 2, ranks_per_node = 1;
    Key num_keys = 2;
    std::size_t outstanding = 1;
    std::uint64_t clocks = 8;
    double localize = 0;  ///< of the calls
    bool kills = false;   ///< a node dies, of which the others have not heard
    bool faulty = false;  ///< mail as real tables have it, over NICs with faults
  };

  ReplicaWorkers(Shape shape, std::uint64_t seed)
      : shape_(shape),
        random_(seed),
        staleness_(random_() % 3),
        workers_(static_cast<std::size_t>(shape.nodes * shape.ranks_per_node)),
        type_(counters(static_cast<std::uint32_t>(workers_.size()))),
        table_(shape.nodes, shape.ranks_per_node, type_, 1 + seed % 8 == 1 ? shape.num_keys : 64,
               sizeof(BatchHead) + (1 + seed % 3) * record_bytes(MailKind::kPush, type_.bytes()), true,
               shape.faulty ? std::optional(seed) : std::nullopt) {
    for (Worker& worker : workers_) worker.ended.push_back({});
  }

  std::optional<std::string> run() {
    std::vector<std::size_t> ready;
    while (true) {
      ready.clear();
      for (std::size_t w = 0; w < workers_.size(); ++w) {
        if (is_dead(w)) continue;
        if (auto broken = collect(w)) return broken;
        if (can_go_on(w)) ready.push_back(w);
      }
      if (ready.empty() && table_.idle()) break;
      if (shape_.kills && dead_node_ < 0 && random_() % 100 == 0) {
        dead_node_ = static_cast<std::int32_t>(random_() % static_cast<std::uint64_t>(shape_.nodes));
        table_.kill(dead_node_, random_);
        continue;
      }
      // A node may ask again and again for a replica of the clock of which only the dead one could tell the owner.
      if (dead_node_ >= 0 && ++steps_since_death_ == kStepsUntilTheyHear) break;
      if (ready.empty() || (!table_.idle() && random_() % 3 != 0)) {
        table_.deliver(random_);
      } else {
        go_on(ready[random_() % ready.size()]);
      }
      most_replicas_ = std::max(most_replicas_, num_replicas());
    }
    // Calls that need the dead node do not end until the others hear of it. All that has been read was as promised.
    if (dead_node_ >= 0) return std::nullopt;
    for (const Worker& worker : workers_)
      if (worker.clock != shape_.clocks) return "a worker waits for ever";
    return end_state();
  }
  [[nodiscard]] std::size_t most_replicas() const { return most_replicas_; }

 private:
  struct Outstanding {
    TableCall call;
    Key key = 0;
    std::vector<std::uint64_t> row;
    std::uint64_t own_before = 0, clock = 0;
    std::vector<std::uint64_t> least;  ///< what the worker had read before
  };
  struct Worker {
    std::uint64_t clock = 0;
    int left = 5;  ///< calls of this clock
    std::deque<std::unique_ptr<Outstanding>> outstanding;
    std::map<Key, std::uint64_t> pushes;
    std::vector<std::map<Key, std::uint64_t>> ended;  ///< pushes before the end of each clock
    std::map<Key, std::vector<std::uint64_t>> seen;
  };

  [[nodiscard]] bool is_dead(std::size_t w) const { return table_.places().node_of[w] == dead_node_; }
  std::size_t num_replicas() {
    std::size_t num = 0;
    for (std::int32_t node = 0; node < shape_.nodes; ++node) num += table_.service(node).num_replicas();
    return num;
  }
  bool can_go_on(std::size_t w) {
    const Worker& worker = workers_[w];
    if (worker.clock == shape_.clocks || worker.outstanding.size() >= shape_.outstanding) return false;
    if (worker.left == 0 && !worker.outstanding.empty()) return false;
    return worker.clock <= table_.client(static_cast<Rank>(w)).all_clocks() + staleness_;
  }
  void go_on(std::size_t w) {
    Worker& worker = workers_[w];
    Client& client = table_.client(static_cast<Rank>(w));
    if (worker.left == 0) {
      worker.left = 5;
      ++worker.clock;
      worker.ended.push_back(worker.pushes);
      client.tell_clock(worker.clock == shape_.clocks ? 1000 : worker.clock);
      return;
    }
    --worker.left;
    if (random_() % 4 == 0) {
      std::vector<Key> keys;
      for (Key key = 0; key < shape_.num_keys; ++key)
        if (random_() % 2 == 0) keys.push_back(key);
      const std::uint64_t start = worker.clock + random_() % 4;
      return client.tell_intent(keys, start, start + random_() % 5);
    }
    auto made = std::make_unique<Outstanding>();
    const Key key = made->key = random_() % shape_.num_keys;
    const bool moves = std::uniform_real_distribution<>(0, 1)(random_) < shape_.localize;
    const MailKind kind = made->call.kind = moves                ? MailKind::kLocalize
                                            : random_() % 2 == 0 ? MailKind::kPush
                                                                 : MailKind::kPull;
    made->row.assign(workers_.size(), 0);
    made->own_before = worker.pushes[key];
    made->clock = worker.clock;
    if (kind == MailKind::kPush) ++worker.pushes[key], made->row[w] = 1;
    made->call.num_keys = 1;
    auto* const row = made->call.out = reinterpret_cast<std::byte*>(made->row.data());
    const std::uint32_t position = 0;
    if (table_.use(static_cast<Rank>(w), kind, key, row) == Found::kAbsent)
      client.ask(made->call, std::span(&key, 1), std::span(&position, 1), row);
    worker.outstanding.push_back(std::move(made));
  }
  /// In the order of their start, which is that of reads of one key.
  std::optional<std::string> collect(std::size_t w) {
    Worker& worker = workers_[w];
    while (!worker.outstanding.empty() && worker.outstanding.front()->call.done) {
      const auto done = std::move(worker.outstanding.front());
      worker.outstanding.pop_front();
      if (done->call.kind != MailKind::kPull) continue;
      const auto& row = done->row;
      if (row[w] != done->own_before)
        return fmt::format("worker {} reads {} of its own counter of key {} after {} pushes", w, row[w],
                           done->key, done->own_before);
      auto& seen = worker.seen[done->key];
      seen.resize(row.size());
      for (std::size_t other = 0; other < row.size(); ++other) {
        if (row[other] < seen[other])
          return fmt::format("worker {} reads [{}] of key {} after [{}]", w, fmt::join(row, " "), done->key,
                             fmt::join(seen, " "));
        if (done->clock < staleness_) continue;
        auto& ended = workers_[other].ended;
        const std::uint64_t clock = done->clock - staleness_;
        if (clock >= ended.size()) return "a worker is too far ahead";
        if (row[other] < ended[clock][done->key])
          return fmt::format(
              "worker {} in clock {} reads {} of counter {} of key {}, which was {} at the end of clock {}",
              w, done->clock, row[other], other, done->key, ended[clock][done->key], clock);
        if (row[other] > workers_[other].pushes[done->key]) return "a push is there twice";
      }
      seen = row;
    }
    return std::nullopt;
  }
  std::optional<std::string> end_state() {
    if (num_replicas() != 0) return "a replica is left";
    for (std::int32_t node = 0; node < shape_.nodes; ++node) {
      if (table_.service(node).num_coming() != 0) return "a row is still waited for";
      if (table_.service(node).num_wanted() != 0) return "an intent is left";
    }
    for (Key key = 0; key < shape_.num_keys; ++key) {
      std::vector<std::uint64_t> found(workers_.size());
      for (std::int32_t node = 0; node < shape_.nodes; ++node)
        (void)table_.store(node).with(key,
                                      [&](std::byte* row) { std::memcpy(found.data(), row, type_.bytes()); });
      for (std::size_t w = 0; w < workers_.size(); ++w)
        if (found[w] != workers_[w].pushes[key])
          return fmt::format("counter {} of key {} is {} after {} pushes", w, key, found[w],
                             workers_[w].pushes[key]);
    }
    return std::nullopt;
  }

  Shape shape_;
  std::mt19937_64 random_;
  std::uint64_t staleness_;
  std::vector<Worker> workers_;
  RowType type_;
  SimulatedTable table_;
  std::size_t most_replicas_ = 0;
  static constexpr int kStepsUntilTheyHear = 2000;
  std::int32_t dead_node_ = -1;
  int steps_since_death_ = 0;
};

void expect_replicas_keep_guarantees(const ReplicaWorkers::Shape& shape) {
  std::size_t most = 0;
  for (std::uint64_t i = 0; i < num_seeds(); ++i) {
    const std::uint64_t seed = hips::test::seed() + i;
    ReplicaWorkers workers(shape, seed);
    std::optional<std::string> broken;
    try {
      broken = workers.run();
    } catch (const Error& error) {
      broken = error.what();
    }
    ASSERT_FALSE(broken) << *broken << "; seed " << seed;
    most = std::max(most, workers.most_replicas());
  }
  EXPECT_GT(most, 1);
}

TEST(ProtocolOfReplicas, OwnPushesAreVisibleReadsMonotonicAndOthersAtMostTheStalenessOld) {
  expect_replicas_keep_guarantees({.nodes = 2, .ranks_per_node = 1});
  expect_replicas_keep_guarantees({.nodes = 2, .ranks_per_node = 2, .num_keys = 3});
  expect_replicas_keep_guarantees({.nodes = 4, .ranks_per_node = 1, .num_keys = 3});
}

TEST(ProtocolOfReplicas, TheSameUntilOthersHearOfADeath) {
  expect_replicas_keep_guarantees(
      {.nodes = 4, .num_keys = 3, .outstanding = 3, .clocks = 12, .localize = 0.1, .kills = true});
}

TEST(ProtocolOfReplicas, TheSameOverNicsThatDelayReorderAndRefuse) {
  expect_replicas_keep_guarantees(
      {.nodes = 3, .num_keys = 3, .outstanding = 3, .clocks = 6, .localize = 0.1, .faulty = true});
}

TEST(ProtocolOfReplicas, TheSameWithOutstandingCalls) {
  expect_replicas_keep_guarantees({.nodes = 2, .ranks_per_node = 2, .num_keys = 2, .outstanding = 4});
  expect_replicas_keep_guarantees({.nodes = 3, .ranks_per_node = 1, .num_keys = 3, .outstanding = 4});
}

TEST(ProtocolOfReplicas, TheSameWhileOthersLocalizeTheRows) {
  expect_replicas_keep_guarantees({.nodes = 2, .ranks_per_node = 2, .num_keys = 2, .localize = 0.2});
  expect_replicas_keep_guarantees(
      {.nodes = 4, .ranks_per_node = 1, .num_keys = 3, .outstanding = 3, .localize = 0.3});
}

}  // namespace
}  // namespace hips::ps
