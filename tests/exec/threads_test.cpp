// Ranks as threads over shared memory, to test concurrency. Runs under TSan in tools/check.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "lib/exec/engine.hpp"
#include "lib/exec/team.hpp"
#include "lib/plan/builder.hpp"
#include "tests/exchange.hpp"
#include "transports/shm/shm.hpp"

namespace hips::exec {
namespace {

using test::ThreadExchange;

std::unique_ptr<Team> make_team(Engine& engine, transport::Transport* transport, const std::string& spec,
                                std::uint64_t id, Rank rank, ThreadExchange& exchange) {
  const Topology topology = parse_topology(spec);
  const std::shared_ptr<PlanBuilder> builder = value_or_throw(plan::make_builder(topology, {}));
  Team::Config config;
  config.id = id;
  config.rank = rank;
  config.size = topology.num_ranks();
  config.plans = {{std::make_shared<const PlanShape>(builder->shape()),
                   [builder, rank] { return builder->program(rank); }}};
  config.route_to = [&](Rank peer) {
    return Team::Route{{engine.peer_for(1, static_cast<std::uint64_t>(peer), 0)}, {transport}};
  };
  config.max_segment_bytes = 4096;
  auto team = value_or_throw(Team::create(engine, std::move(config)));
  const auto addresses =
      exchange.all(rank, value_or_throw(team->allocate(exchange.all(rank, team->offer()))));
  if (Status status = team->connect(addresses); !status.ok()) throw Error(status);
  return team;
}

void reduce_and_check(Engine& engine, Team& team, Rank rank, Rank size, std::uint64_t count, int salt) {
  std::vector<std::int64_t> data(count, rank + salt);
  auto* bytes = reinterpret_cast<std::byte*>(data.data());
  auto operation =
      team.start({.in = bytes, .out = bytes, .count = count, .type = DataType::kInt64, .op = ReduceOp::kSum});
  const Status status = engine.wait(*operation);
  ASSERT_TRUE(status.ok()) << status.message;
  const std::int64_t expected = std::int64_t{size} * (size - 1) / 2 + std::int64_t{size} * salt;
  for (const std::int64_t value : data) ASSERT_EQ(value, expected);
}

TEST(Threads, compute_exact_sums_as_ranks_awake_and_asleep) {
  constexpr Rank kSize = 4;
  ThreadExchange exchange(kSize);
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < kSize; ++rank) {
    threads.emplace_back([&, rank] {
      // No spinning and few yields, so most waits end in a sleep.
      Engine engine({.waits = std::make_shared<WaitPolicy>(WaitPolicy::fixed({0, rank % 2}))});
      auto* transport = engine.add_transport(value_or_throw(shm::create({})));
      auto team = make_team(engine, transport, "bcube:2,1", 1, rank, exchange);
      for (int i = 0; i < 300; ++i) {
        reduce_and_check(engine, *team, rank, kSize, static_cast<std::uint64_t>(i % 7 == 0 ? 5000 : i), i);
      }
      exchange.meet();
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(Threads, of_one_rank_use_different_communicators_concurrently) {
  constexpr Rank kSize = 3;
  constexpr int kTeams = 3;
  ThreadExchange exchange(kSize);
  std::vector<std::thread> ranks;
  for (Rank rank = 0; rank < kSize; ++rank) {
    ranks.emplace_back([&, rank] {
      Engine engine({.waits = std::make_shared<WaitPolicy>(WaitPolicy::fixed({10, 10}))});
      auto* transport = engine.add_transport(value_or_throw(shm::create({})));
      std::vector<std::unique_ptr<Team>> teams;
      for (int t = 0; t < kTeams; ++t) {
        teams.push_back(
            make_team(engine, transport, "switch:3", 10 + static_cast<std::uint64_t>(t), rank, exchange));
      }
      std::vector<std::thread> users;
      for (int t = 0; t < kTeams; ++t) {
        users.emplace_back([&, t] {
          for (int i = 0; i < 100; ++i) {
            reduce_and_check(engine, *teams[t], rank, kSize, static_cast<std::uint64_t>(1 + i * (t + 1)),
                             i + t);
          }
        });
      }
      for (auto& user : users) user.join();
      exchange.meet();
    });
  }
  for (auto& rank : ranks) rank.join();
}

TEST(Threads, wake_from_a_wait_when_another_thread_reports_a_failure) {
  constexpr Rank kSize = 2;
  ThreadExchange exchange(kSize);
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < kSize; ++rank) {
    threads.emplace_back([&, rank] {
      Engine engine({.waits = std::make_shared<WaitPolicy>(WaitPolicy::fixed({0, 0}))});
      auto* transport = engine.add_transport(value_or_throw(shm::create({})));
      auto team = make_team(engine, transport, "switch:2", 1, rank, exchange);
      if (rank == 0) {
        std::int32_t value = 1;
        auto* bytes = reinterpret_cast<std::byte*>(&value);
        auto operation = team->start(
            {.in = bytes, .out = bytes, .count = 1, .type = DataType::kInt32, .op = ReduceOp::kSum});
        std::thread control([&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          team->fail(Status::error(Code::kPeerLost, "told by the control plane"));
        });
        const Status status = engine.wait(*operation);
        EXPECT_EQ(status.message, "told by the control plane");
        control.join();
      }
      exchange.meet();
    });
  }
  for (auto& thread : threads) thread.join();
}

/// A wait that never ends by itself.
class Endless final : public Waitable {
 public:
  std::atomic<bool> over{false};
  [[nodiscard]] bool done() const override { return over.load(); }
  [[nodiscard]] const Status& status() const override { return status_; }
  [[nodiscard]] std::string waiting_text() const override { return "the end"; }

 private:
  Status status_;
};

TEST(Threads, get_the_lock_before_threads_that_wait) {
  Engine engine{Engine::Options()};
  const std::int64_t begin_ns = engine.clock().now_ns();
  constexpr std::int64_t kTickNs = 20'000'000'000;
  std::vector<std::thread> waiting;
  for (int i = 0; i < 3; ++i) {
    waiting.emplace_back([&] {
      Endless endless;
      const Status status = engine.wait(endless, {.deadline_ns = begin_ns + kTickNs / 4, .tick_ns = kTickNs});
      EXPECT_EQ(status.code, Code::kTimeout);
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  for (std::uint64_t peer = 0; peer < 200; ++peer) (void)engine.peer_for(1, peer, 0);
  EXPECT_LT(engine.clock().now_ns(), begin_ns + kTickNs / 4) << "it waited for a deadline or a tick";
  for (std::thread& thread : waiting) thread.join();
}

TEST(Threads, that_wait_behind_another_one_keep_their_deadline) {
  Engine engine{Engine::Options()};
  const std::int64_t begin_ns = engine.clock().now_ns();
  constexpr std::int64_t kTickNs = 20'000'000'000;
  Endless first, endless;
  std::thread driving(
      [&] { (void)engine.wait(first, {.deadline_ns = begin_ns + kTickNs / 2, .tick_ns = kTickNs}); });
  while (engine.while_still([] {})) std::this_thread::yield();
  const Status status = engine.wait(endless, {.deadline_ns = begin_ns + 1'000'000, .tick_ns = kTickNs});
  EXPECT_EQ(status.code, Code::kTimeout);
  EXPECT_LT(engine.clock().now_ns(), begin_ns + kTickNs / 2)
      << "it waited for the other's deadline or its tick";
  first.over = true;
  engine.wake();
  driving.join();
}

/// Makes progress once, and then throws std::bad_alloc.
class OutOfMemory final : public EngineClient {
 public:
  bool advance() override {
    if (++num_advances > 1) return false;
    throw std::bad_alloc();
  }
  [[nodiscard]] bool busy() const override { return num_advances < 3; }
  int arm() override { return -1; }
  void disarm() override {}

  int num_advances = 0;
};

TEST(Threads, release_the_engine_when_a_client_throws) {
  Engine engine{Engine::Options()};
  OutOfMemory client;
  EXPECT_THROW(engine.activate(client), std::bad_alloc);
  std::thread other([&] { (void)engine.progress(); });
  other.join();
  engine.try_progress();
  EXPECT_EQ(client.num_advances, 3);
  engine.remove(client);
}

}  // namespace
}  // namespace hips::exec
