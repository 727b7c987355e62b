// Ranks as threads that share memory like processes. Runs under TSan in tools/check.

#include "lib/node/node_team.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/choices.hpp"
#include "tests/node/teams.hpp"

namespace {

/// Number of allocations of this thread.
thread_local std::int64_t num_allocations = 0;

}  // namespace

// Not inlined: otherwise the compiler would see malloc behind new, and warn about delete.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++num_allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace hips::node {
namespace {

using hips::test::make_teams;
using hips::test::on_all_ranks;
using hips::test::seed;
using testing::ElementsAre;
using testing::HasSubstr;

// Values whose sum depends on the order of additions.
double value_of(Rank rank, std::uint64_t i, std::uint64_t salt) {
  return (static_cast<double>((i * 7919 + static_cast<std::uint64_t>(rank) * 104729 + salt) % 1000003) -
          5e5) /
         7;
}

struct Shape {
  Rank size;
  std::size_t staging;
  SpinLimits spin;
};

class Teams : public testing::TestWithParam<Shape> {};

TEST_P(Teams, reduce_in_rank_order_for_every_size_in_and_out_of_place) {
  const Shape shape = GetParam();
  NodeTeam::Config config;
  config.max_staging_bytes = shape.staging;
  config.waits = std::make_shared<WaitPolicy>(WaitPolicy::fixed(shape.spin));
  auto teams = make_teams(shape.size, config);
  std::mt19937_64 random(seed());
  constexpr std::size_t shown_inline = CallLine::kInlineBytes / sizeof(double);
  const std::size_t exchange = teams[0]->layout().exchange_bytes / sizeof(double);
  const std::size_t slice = teams[0]->layout().slice_bytes / sizeof(double);
  std::vector<std::size_t> counts = {
      0,     1,         shown_inline,  shown_inline + 1, exchange, exchange + 1,
      slice, slice + 1, 3 * slice + 5, 11 * slice};
  for (int i = 0; i < 30; ++i) counts.push_back(random() % (random() % 4 == 0 ? 9 * slice : 300));
  const std::uint64_t salt = random();
  on_all_ranks(shape.size, [&](Rank rank) {
    std::vector<double> in, out, expected;
    for (std::size_t call = 0; call < counts.size(); ++call) {
      const std::size_t count = counts[call];
      in.resize(count);
      out.assign(count, -1);
      expected.resize(count);
      for (std::size_t i = 0; i < count; ++i) {
        expected[i] = value_of(0, i, salt + call);
        for (Rank r = 1; r < shape.size; ++r) expected[i] += value_of(r, i, salt + call);
        in[i] = value_of(rank, i, salt + call);
      }
      const bool in_place = call % 3 == 0;
      auto* from = reinterpret_cast<std::byte*>(in.data());
      auto* to = in_place ? from : reinterpret_cast<std::byte*>(out.data());
      teams[rank]->start(
          {.in = from, .out = to, .count = count, .type = DataType::kFloat64, .op = ReduceOp::kSum});
      const Status status = teams[rank]->wait({});
      ASSERT_TRUE(status.ok()) << status.message;
      // The caller may write to its buffer immediately.
      const std::vector<double> result = in_place ? in : out;
      std::fill(in.begin(), in.end(), -2);
      ASSERT_EQ(result, expected) << count << " elements in call " << call;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, Teams,
                         testing::Values(Shape{2, 8U << 20U, {100, 100}}, Shape{2, 40000, {0, 0}},
                                         Shape{3, 8U << 20U, {0, 20}}, Shape{4, 60000, {0, 0}},
                                         Shape{5, 8U << 20U, {10, 10}}, Shape{9, 8U << 20U, {0, 50}},
                                         Shape{9, 100000, {0, 0}}),
                         [](const auto& shape) {
                           return "ranks" + std::to_string(shape.param.size) +
                                  (shape.param.staging < 1000000 ? "_small_staging" : "") +
                                  (shape.param.spin.yield_polls == 0 ? "_asleep" : "");
                         });

TEST(NodeTeam, allocates_nothing_in_a_call) {
  NodeTeam::Config config;
  config.waits = std::make_shared<WaitPolicy>(WaitPolicy::fixed({100, 100}));
  auto teams = make_teams(3, config);
  on_all_ranks(3, [&](Rank rank) {
    constexpr std::size_t kMost = 500000;
    std::vector<float> data(kMost, 1);
    std::byte* const segment = value_or_throw(MemoryRegistry::process().allocate(kMost * sizeof(float)));
    for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, kMost}) {
      // The first large call maps the segments of the others.
      auto* bytes = count < kMost || rank == 0 ? reinterpret_cast<std::byte*>(data.data()) : segment;
      int ticks = 0;
      teams[rank]->start({.in = bytes, .out = bytes, .count = count});
      (void)teams[rank]->wait({});
      const std::int64_t before = num_allocations;
      for (int i = 0; i < 20; ++i) {
        WaitOptions options;
        options.on_tick = [&ticks](std::int64_t) { ++ticks; };
        teams[rank]->start({.in = bytes, .out = bytes, .count = count});
        (void)teams[rank]->wait(options);
      }
      EXPECT_EQ(num_allocations, before) << count;
    }
    EXPECT_TRUE(MemoryRegistry::process().free(segment).ok());
  });
}

TEST(NodeTeam, uses_at_most_the_given_staging) {
  for (const Rank size : {2, 3, 8, 64, 200}) {
    for (const std::size_t bytes : {std::size_t{8} << 10U, std::size_t{64} << 10U, std::size_t{256} << 10U,
                                    std::size_t{1} << 20U, std::size_t{8} << 20U}) {
      for (const std::uint32_t slices : {StagingLayout::kFewSlices, 16U}) {
        for (const bool oversubscribed : {false, true}) {
          const StagingLayout layout = StagingLayout::of(size, bytes, slices, oversubscribed);
          EXPECT_LE(layout.segment_bytes(), bytes) << size;
          EXPECT_LE(layout.elements_at_once(4, size) * 4, layout.num_slices * layout.slice_bytes) << size;
        }
      }
    }
  }
}

TEST(NodeTeam, parts_cover_a_slice_once) {
  for (const std::size_t elements : {1U, 5U, 16U, 17U, 100U, 4096U, 4099U}) {
    for (const int size : {1, 2, 3, 7, 64}) {
      std::size_t next = 0;
      for (int rank = 0; rank < size; ++rank) {
        const Part part = part_of(elements, 4, rank, size);
        EXPECT_EQ(part.first, next);
        next += part.elements;
      }
      EXPECT_EQ(next, elements);
    }
  }
}

TEST(NodeTeam, names_both_calls_if_ranks_disagree_for_every_pair_of_sizes) {
  constexpr std::array<std::uint64_t, 5> kCounts = {1, 100, 1000, 40000, 300000};
  for (const std::uint64_t mine : kCounts) {
    for (const std::uint64_t theirs : kCounts) {
      if (mine == theirs) continue;
      NodeTeam::Config config;
      config.waits = std::make_shared<WaitPolicy>(WaitPolicy::fixed({100, 100}));
      std::vector<std::unique_ptr<NodeTeam>> teams;
      std::mutex mutex;
      std::string message;
      config.on_error = [&](const Status& status) {
        const std::lock_guard lock(mutex);
        if (message.empty()) message = status.message;
        for (auto& team : teams) team->fail(status);
      };
      teams = make_teams(2, config);
      on_all_ranks(2, [&](Rank rank) {
        std::vector<float> data(rank == 0 ? mine : theirs, 1);
        auto* bytes = reinterpret_cast<std::byte*>(data.data());
        teams[rank]->start({.in = bytes, .out = bytes, .count = data.size()});
        EXPECT_EQ(teams[rank]->wait({}).code, Code::kMismatch);
      });
      EXPECT_THAT(message, HasSubstr(std::to_string(mine) + " x float32, sum"));
      EXPECT_THAT(message, HasSubstr(std::to_string(theirs) + " x float32, sum"));
      EXPECT_THAT(message, HasSubstr("allreduce #1: rank "));
    }
  }
}

TEST(NodeTeam, names_the_rank_that_stops_in_the_middle_of_a_call) {
  auto teams = make_teams(3, {});
  const std::uint64_t count = 11 * teams[0]->layout().slice_bytes / sizeof(float);
  std::vector<std::vector<float>> data(3, std::vector<float>(count, 1));
  const auto start = [&](Rank rank) {
    auto* bytes = reinterpret_cast<std::byte*>(data[rank].data());
    teams[rank]->start({.in = bytes, .out = bytes, .count = count});
    (void)teams[rank]->advance();
  };
  // Rank 2 copies its first slices and takes none, so nobody can copy more; the others take those.
  start(2);
  start(0);
  start(1);
  while (static_cast<int>(teams[0]->advance()) + static_cast<int>(teams[1]->advance()) > 0) {
  }
  EXPECT_THAT(teams[0]->waiting_for(), ElementsAre(2));
  EXPECT_THAT(teams[1]->waiting_for(), ElementsAre(2));
  on_all_ranks(3, [&](Rank rank) { EXPECT_TRUE(teams[rank]->wait({}).ok()); });
}

TEST(NodeTeam, names_the_late_rank_at_the_deadline_and_continues) {
  for (const std::uint64_t count : {1U, 300000U}) {
    NodeTeam::Config config;
    config.waits = std::make_shared<WaitPolicy>(WaitPolicy::fixed({10, 10}));
    auto teams = make_teams(3, config);
    std::vector<std::vector<float>> data(3, std::vector<float>(count, 1));
    const auto start = [&](Rank rank) {
      auto* bytes = reinterpret_cast<std::byte*>(data[rank].data());
      teams[rank]->start({.in = bytes, .out = bytes, .count = count});
    };
    std::thread second([&] {
      start(2);
      EXPECT_TRUE(teams[2]->wait({}).ok());
    });
    start(0);
    int ticks = 0;
    WaitOptions options;
    options.deadline_ns = SystemClock::instance().now_ns() + 300'000'000;
    options.tick_ns = 10'000'000;
    options.on_tick = [&](std::int64_t) { ++ticks; };
    const Status status = teams[0]->wait(options);
    EXPECT_EQ(status.code, Code::kTimeout);
    EXPECT_GE(ticks, 2);
    EXPECT_THAT(teams[0]->waiting_for(), ElementsAre(1));
    EXPECT_THAT(status.message, HasSubstr("rank 1 (shared memory"));
    std::thread first([&] {
      start(1);
      EXPECT_TRUE(teams[1]->wait({}).ok());
    });
    EXPECT_TRUE(teams[0]->wait({}).ok());
    first.join();
    second.join();
    EXPECT_EQ(data[0], std::vector<float>(count, 3));
  }
}

// Peers may depend on what a tick does, so that short ticks must not wait for many polls.
TEST(NodeTeam, ticks_that_are_20_us_apart_come_in_time) {
  /// Each look takes 1 us, so that the time of a wait is known.
  class Counting final : public Clock {
   public:
    [[nodiscard]] std::int64_t now_ns() const override { return num_looks_ += 1'000; }

   private:
    mutable std::atomic<std::int64_t> num_looks_{0};
  } clock;
  NodeTeam::Config config;
  config.waits = std::make_shared<WaitPolicy>(WaitPolicy::fixed({1'000'000, 1'000'000}));
  config.clock = &clock;
  auto teams = make_teams(2, config);
  float value = 1;
  auto* bytes = reinterpret_cast<std::byte*>(&value);
  teams[0]->start({.in = bytes, .out = bytes, .count = 1});
  int ticks = 0;
  WaitOptions options;
  options.deadline_ns = clock.now_ns() + 400'000;
  options.tick_ns = 20'000;
  options.on_tick = [&](std::int64_t) { ++ticks; };
  EXPECT_EQ(teams[0]->wait(options).code, Code::kTimeout);
  EXPECT_GE(ticks, 12);
}

TEST(NodeTeam, wakes_sleepers_through_their_pipes_and_loses_no_wake_up) {
  NodeTeam::Config config;
  config.uses_wake_pipes = true;
  auto teams = make_teams(3, config);
  const int rounds = std::getenv("HIPS_TEST_SAMPLE") != nullptr ? 5'000 : 100'000;
  on_all_ranks(3, [&](Rank rank) {
    NodeTeam& team = *teams[rank];
    for (int round = 0; round < rounds; ++round) {
      std::int64_t value = round + rank;
      auto* bytes = reinterpret_cast<std::byte*>(&value);
      team.start({.in = bytes, .out = bytes, .count = 1, .type = DataType::kInt64});
      while (!team.test()) {
        pollfd door{team.arm(), POLLIN, 0};
        const int rung = team.advance() ? 1 : poll(&door, 1, 20'000);
        team.disarm();
        ASSERT_EQ(rung, 1) << "no wake-up in round " << round;
      }
      ASSERT_EQ(value, 3 * std::int64_t{round} + 3);
    }
  });
}

TEST(NodeTeam, fail_ends_a_sleeping_call_and_every_later_call) {
  NodeTeam::Config config;
  auto teams = make_teams(2, config);
  std::vector<float> data(1);
  auto* bytes = reinterpret_cast<std::byte*>(data.data());
  teams[0]->start({.in = bytes, .out = bytes, .count = 1});
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    teams[0]->fail(Status::error(Code::kPeerLost, "rank 1 died"));
  });
  WaitOptions options;
  options.tick_ns = 60'000'000'000;
  EXPECT_EQ(teams[0]->wait(options).message, "rank 1 died");
  killer.join();
  teams[0]->start({.in = bytes, .out = bytes, .count = 1});
  EXPECT_EQ(teams[0]->wait(options).code, Code::kPeerLost);
}

// The control thread may learn of a failure while this rank connects. A thread sanitizer sees a race.
TEST(NodeTeam, may_fail_while_it_connects) {
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<std::unique_ptr<NodeTeam>> teams;
    std::vector<NodeName> names;
    for (Rank rank = 0; rank < 2; ++rank) {
      auto segment = value_or_throw(NodeSegment::create());
      const bool uses_wake_pipes = trial % 2 == 0;
      ASSERT_TRUE(!uses_wake_pipes || segment->make_wake_pipe().ok());
      names.push_back(segment->name());
      teams.push_back(value_or_throw(NodeTeam::create(
          {.segment = segment, .rank = rank, .size = 2, .uses_wake_pipes = uses_wake_pipes})));
    }
    std::thread control([&] { teams[0]->fail(Status::error(Code::kPeerLost, "rank 1 died")); });
    ASSERT_TRUE(teams[0]->connect(names).ok());
    control.join();
    float value = 1;
    auto* const bytes = reinterpret_cast<std::byte*>(&value);
    teams[0]->start({.in = bytes, .out = bytes, .count = 1});
    EXPECT_EQ(teams[0]->wait({}).message, "rank 1 died");
  }
}

/// A process that has been killed and whose parent has not asked for its exit code yet: it has a number, and no descriptors.
class Zombie {
 public:
  Zombie() : pid_(fork()) {
    if (pid_ == 0) _exit(0);
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) != 0)
      throw std::runtime_error("waitid");
  }
  ~Zombie() { waitpid(pid_, nullptr, 0); }
  Zombie(const Zombie&) = delete;
  Zombie& operator=(const Zombie&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

TEST(NodeTeam, NamesTheRankThatDiedDuringSetUp) {
  const Zombie killed;
  auto segment = value_or_throw(NodeSegment::create());
  const auto of_killed = value_or_throw(NodeSegment::create());
  std::vector<NodeName> names = {segment->name(), of_killed->name()};
  names[1].memory.file.pid = killed.pid();
  auto team = value_or_throw(NodeTeam::create({.segment = segment, .rank = 0, .size = 2, .names = {4, 7}}));
  const Status status = team->connect(names);
  EXPECT_EQ(status.code, Code::kPeerLost);
  EXPECT_EQ(status.rank, 7);
  EXPECT_EQ(status.message,
            "rank 7 is lost: shared memory: process " + std::to_string(killed.pid()) + " has ended");
}

TEST(NodeTeam, keeps_the_operands_of_a_failed_call) {
  // Rank 0 learns of the failure first, and starts its next call after it has left the failed one.
  NodeTeam::Config config;
  auto teams = make_teams(2, config);
  const std::uint64_t count = teams[0]->layout().elements_at_once(sizeof(float), 2);
  std::vector<float> first(count, 1), second(count, 2), theirs(count);
  const auto bytes_of = [](std::vector<float>& data) { return reinterpret_cast<std::byte*>(data.data()); };
  teams[0]->start({.collective = Collective::kBcast, .out = bytes_of(first), .count = count});
  while (teams[0]->advance()) {
  }
  teams[0]->fail(Status::error(Code::kPeerLost, "a third one died"));
  EXPECT_EQ(teams[0]->wait({}).code, Code::kPeerLost);
  teams[0]->start({.collective = Collective::kBcast, .out = bytes_of(second), .count = count});
  EXPECT_EQ(teams[0]->test()->code, Code::kPeerLost);
  teams[1]->start({.collective = Collective::kBcast, .out = bytes_of(theirs), .count = count});
  while (teams[1]->advance()) {
  }
  if (teams[1]->done()) {
    EXPECT_EQ(theirs, first);
  }
}

}  // namespace
}  // namespace hips::node
