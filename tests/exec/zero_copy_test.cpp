// Registered user memory: it is sent in place. Also memory that is not registered, that a device refuses, or
// that is deregistered at an unfavourable moment.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/base/log.hpp"
#include "lib/base/memory_registry.hpp"
#include "lib/exec/grant.hpp"
#include "tests/choices.hpp"
#include "tests/exec/plan_cases.hpp"
#include "tests/exec/spy_transport.hpp"
#include "tests/exec/world.hpp"

namespace hips::exec {
namespace {

using testing::Case;
using testing::cases;
using testing::Seen;
using testing::SpyTransport;
using testing::World;
using testing::WorldOptions;

MemoryRegistry& registry() {
  return MemoryRegistry::process();
}

std::byte* bytes_of(std::vector<std::int64_t>& data) {
  return reinterpret_cast<std::byte*>(data.data());
}

/// A registration for the lifetime of the object; asserts that it can be removed.
class Registration {
 public:
  Registration() = default;
  explicit Registration(std::vector<std::int64_t>& data) {
    if (data.empty()) return;
    id_ = value_or_throw(registry().add(bytes_of(data), data.size() * sizeof(std::int64_t)));
  }
  Registration(Registration&& other) noexcept : id_(std::exchange(other.id_, 0)) {}
  Registration& operator=(Registration&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Registration() { end(); }
  void end() {
    if (id_ == 0) return;
    const Status status = registry().remove(std::exchange(id_, 0));
    EXPECT_TRUE(status.ok()) << status.message;
  }

 private:
  std::uint64_t id_ = 0;
};

std::int64_t value(Rank rank, std::uint64_t i, std::uint64_t salt) {
  return static_cast<std::int64_t>((i * 31 + static_cast<std::uint64_t>(rank) * 17 + salt) % 1009);
}

/// The vectors of a rank. They lie somewhere inside larger ones, and each is registered or not.
struct Buffers {
  std::vector<std::int64_t> in, out;
  std::size_t offset = 0;
  bool in_place = false;
  Registration in_registered, out_registered;
  [[nodiscard]] std::int64_t* result() { return out.data() + offset; }
};

// One allreduce. Each rank registers any of its vectors, and reuses its memory as soon as it may.
void run_mixed(World& world, std::uint64_t count) {
  auto& random = world.random();
  const std::uint64_t salt = random() % 1000;
  const bool in_place = random() % 2 == 0;
  std::vector<Buffers> all(static_cast<std::size_t>(world.size()));
  std::vector<std::shared_ptr<Operation>> operations;
  for (Rank rank = 0; rank < world.size(); ++rank) {
    Buffers& mine = all[static_cast<std::size_t>(rank)];
    mine.offset = random() % 3;
    mine.out.assign(count + 5, -1);
    mine.in.assign(count + 5, -2);
    std::vector<std::int64_t>& source = in_place ? mine.out : mine.in;
    for (std::uint64_t i = 0; i < count; ++i) source[mine.offset + i] = value(rank, i, salt);
    if (random() % 2 == 0) mine.in_registered = Registration(mine.in);
    if (random() % 2 == 0) mine.out_registered = Registration(mine.out);
    operations.push_back(
        world[rank].team->start({.in = reinterpret_cast<std::byte*>(source.data() + mine.offset),
                                 .out = reinterpret_cast<std::byte*>(mine.result()),
                                 .count = count,
                                 .type = DataType::kInt64,
                                 .op = ReduceOp::kSum}));
    if (random() % 4 == 0) world[rank].engine->progress();
  }
  std::vector<std::vector<std::int64_t>> results(all.size());
  std::vector<bool> taken(all.size(), false);
  ASSERT_TRUE(world.run([&] {
    bool finished = true;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (!operations[rank]->done()) {
        finished = false;
      } else if (!taken[rank]) {
        taken[rank] = true;
        results[rank].assign(all[rank].result(), all[rank].result() + count);
        std::fill(all[rank].in.begin(), all[rank].in.end(), 77);
        std::fill(all[rank].out.begin(), all[rank].out.end(), 78);
        all[rank].in_registered.end();
        all[rank].out_registered.end();
      }
    }
    return finished;
  })) << "rank 0 waits for "
      << operations[0]->waiting_text();
  std::vector<std::int64_t> expected(count, 0);
  for (Rank rank = 0; rank < world.size(); ++rank) {
    for (std::uint64_t i = 0; i < count; ++i) expected[i] += value(rank, i, salt);
  }
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    ASSERT_TRUE(operations[rank]->status().ok()) << operations[rank]->status().message;
    ASSERT_EQ(results[rank], expected) << "rank " << rank << " count " << count << " in place " << in_place;
    // No rank wrote into the memory after it belonged to the user again.
    for (const std::int64_t element : all[rank].out) ASSERT_EQ(element, 78) << "rank " << rank;
  }
}

class ZeroCopy : public ::testing::TestWithParam<Case> {};

TEST_P(ZeroCopy, is_exact_for_any_registration_on_a_late_full_and_reordering_network) {
  const std::uint64_t seed = test::seed();
  std::mt19937_64 random(seed);
  WorldOptions options{.request = GetParam().request};
  options.needs_registration = true;
  options.credits = random() % 2 == 0 ? 1 : 1 + static_cast<std::int32_t>(random() % 5);
  // The network may read sources at any time until completion.
  options.faults = {
      .delay = 0.3, .reorder = 0.3, .late_completion = 0.7, .queue_full = 0.2, .max_delay_steps = 30};
  World world(GetParam().spec, seed, options);
  for (const std::uint64_t count : {1U, 7U, 101U, 2003U, 5003U}) {
    run_mixed(world, count);
    if (HasFatalFailure()) return;
  }
}

TEST_P(ZeroCopy, is_exact_with_temporary_registrations) {
  const std::uint64_t seed = test::seed();
  std::mt19937_64 random(seed);
  WorldOptions options{.request = GetParam().request};
  options.registers_freely = true;
  options.credits = random() % 2 == 0 ? 1 : 1 + static_cast<std::int32_t>(random() % 5);
  options.faults = {
      .delay = 0.3, .reorder = 0.3, .late_completion = 0.7, .queue_full = 0.2, .max_delay_steps = 30};
  World world(GetParam().spec, seed, options);
  for (const std::uint64_t count : {1U, 7U, 101U, 2003U, 5003U}) {
    run_mixed(world, count);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, ZeroCopy, ::testing::ValuesIn(hips::test::or_every_nth(cases(), 10)),
                         testing::name_of);

/// A world whose transports count requests and registrations.
struct SpiedWorld {
  explicit SpiedWorld(const std::string& spec, WorldOptions options = {}) : world(spec, 1, with(options)) {}
  WorldOptions with(WorldOptions options) {
    options.needs_registration = !options.registers_freely;
    options.wrap = [this](auto inner) {
      return std::make_unique<SpyTransport>(std::move(inner), *seen.emplace_back(std::make_unique<Seen>()));
    };
    return options;
  }
  /// One in-place sum of `count` ones on each rank.
  void sum(std::vector<std::vector<std::int64_t>>& data) {
    std::vector<std::shared_ptr<Operation>> operations;
    for (Rank rank = 0; rank < world.size(); ++rank) {
      auto& mine = data[static_cast<std::size_t>(rank)];
      std::fill(mine.begin(), mine.end(), 1);
      operations.push_back(world[rank].team->start({.in = bytes_of(mine),
                                                    .out = bytes_of(mine),
                                                    .count = mine.size(),
                                                    .type = DataType::kInt64,
                                                    .op = ReduceOp::kSum}));
    }
    ASSERT_TRUE(world.run(operations));
    for (const auto& mine : data) ASSERT_EQ(mine, std::vector<std::int64_t>(mine.size(), world.size()));
  }
  std::vector<std::unique_ptr<Seen>> seen;  ///< by rank
  World world;
};

TEST(RegisteredMemory, is_sent_in_place_and_other_memory_is_copied) {
  SpiedWorld spied("switch:3");
  std::vector<std::vector<std::int64_t>> data(3, std::vector<std::int64_t>(4000));
  Registration first(data[0]), second(data[1]);
  spied.sum(data);
  for (const int rank : {0, 1}) {
    // One registration for sending, and one for peers that write.
    EXPECT_EQ(spied.seen[rank]->registered, 2);
    EXPECT_GT(spied.seen[rank]->in_place, 0);
    EXPECT_EQ(spied.seen[rank]->in_place, spied.seen[rank]->segments);
  }
  EXPECT_GT(spied.seen[2]->segments, 0);
  EXPECT_EQ(spied.seen[2]->registered, 0);
  EXPECT_EQ(spied.seen[2]->in_place, 0);
  // It is registered once, and deregistered at the end.
  spied.sum(data);
  EXPECT_EQ(spied.seen[0]->registered, 2);
  first.end();
  EXPECT_EQ(spied.seen[0]->deregistered, 2);
  const int in_place = spied.seen[0]->in_place;
  spied.sum(data);
  EXPECT_EQ(spied.seen[0]->in_place, in_place);
}

TEST(RegisteredMemory, is_not_used_if_the_buffer_lies_partly_outside) {
  SpiedWorld spied("switch:2");
  std::vector<std::vector<std::int64_t>> data(2, std::vector<std::int64_t>(1000));
  auto half = registry().add(bytes_of(data[0]), 4000);
  auto rest = registry().add(bytes_of(data[0]) + 4000, 4000);
  ASSERT_TRUE(half && rest);
  spied.sum(data);
  EXPECT_EQ(spied.seen[0]->registered, 0);
  EXPECT_TRUE(registry().remove(*half).ok());
  EXPECT_TRUE(registry().remove(*rest).ok());
}

TEST(RegisteredMemory, goes_through_staging_with_one_warning_if_the_device_refuses_it) {
  std::vector<std::string> lines;
  log::redirect([&](log::LogLevel, std::string_view line) { lines.emplace_back(line); });
  {
    SpiedWorld spied("switch:2");
    spied.seen[0]->refuses = true;
    std::vector<std::vector<std::int64_t>> data(2, std::vector<std::int64_t>(3000));
    Registration first(data[0]), second(data[1]);
    spied.sum(data);
    spied.sum(data);
    EXPECT_EQ(spied.seen[0]->in_place, 0);
    EXPECT_GT(spied.seen[1]->in_place, 0);
  }
  log::redirect({});
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0], ::testing::HasSubstr("through staging instead: spy: RLIMIT_MEMLOCK is too low"));
}

TEST(RegisteredMemory, is_registered_a_thousand_times_without_growth) {
  SpiedWorld spied("switch:2");
  std::vector<std::vector<std::int64_t>> data(2, std::vector<std::int64_t>(300));
  transport::MemoryId highest = 0;
  for (int i = 0; i < 1000; ++i) {
    Registration first(data[0]), second(data[1]);
    spied.sum(data);
    if (HasFatalFailure()) return;
    highest = std::max(highest, *spied.seen[0]->user_memory.rbegin());
  }
  EXPECT_EQ(spied.seen[0]->registered, 2000);
  EXPECT_EQ(spied.seen[0]->deregistered, 2000);
  EXPECT_EQ(registry().num_ranges(), 0U);
  EXPECT_LT(highest, 10);
}

TEST(RegisteredMemory, cannot_be_deregistered_while_an_operation_uses_it) {
  SpiedWorld spied("switch:2");
  std::vector<std::int64_t> data(100, 1), other(100, 1);
  auto id = registry().add(bytes_of(data), 800);
  ASSERT_TRUE(id);
  auto mine = spied.world[0].team->start(
      {.in = bytes_of(data), .out = bytes_of(data), .count = 100, .type = DataType::kInt64});
  spied.world[0].engine->progress();
  const Status refused = registry().remove(*id);
  EXPECT_EQ(refused.code, Code::kInvalidArgument);
  EXPECT_THAT(refused.message, ::testing::HasSubstr("an outstanding operation uses"));
  auto peers = spied.world[1].team->start(
      {.in = bytes_of(other), .out = bytes_of(other), .count = 100, .type = DataType::kInt64});
  ASSERT_TRUE(spied.world.run({mine, peers}));
  EXPECT_TRUE(registry().remove(*id).ok());
  EXPECT_FALSE(registry().remove(*id).ok());
}

TEST(RegisteredMemory, stays_registered_after_a_failed_call_until_the_device_has_read_it) {
  WorldOptions options{.credits = 4};
  options.faults = {.late_completion = 1, .max_delay_steps = 100};
  SpiedWorld spied("switch:2", options);
  std::vector<std::int64_t> data(2000, 1);
  auto id = registry().add(bytes_of(data), data.size() * 8);
  ASSERT_TRUE(id);
  auto mine = spied.world[0].team->start(
      {.in = bytes_of(data), .out = bytes_of(data), .count = 2000, .type = DataType::kInt64});
  spied.world[0].engine->progress();
  ASSERT_GT(spied.seen[0]->in_place, 0);
  spied.world[0].team->fail(Status::error(Code::kAborted, "given up"));
  ASSERT_TRUE(spied.world.run({mine}));
  // The call is over, so no peer writes any more and the range may be removed. Outstanding requests keep the
  // memory that they read.
  EXPECT_EQ(spied.seen[0]->deregistered, 1);
  EXPECT_TRUE(registry().remove(*id).ok());
  EXPECT_EQ(spied.seen[0]->deregistered, 1);
  spied.world.run([&] { return spied.seen[0]->deregistered == 2; });
  EXPECT_EQ(spied.seen[0]->deregistered, 2);
  EXPECT_TRUE(spied.world[0].errors.empty());
}

TEST(RegisteredMemory, may_exist_before_and_after_the_engine) {
  std::vector<std::vector<std::int64_t>> data(2, std::vector<std::int64_t>(1000));
  Registration first(data[0]), second(data[1]);
  std::unique_ptr<Seen> last;
  for (int i = 0; i < 3; ++i) {
    auto spied = std::make_unique<SpiedWorld>("switch:2");
    spied->sum(data);
    EXPECT_EQ(spied->seen[0]->registered, 2);
    last = std::move(spied->seen[0]);
    spied->seen[0] = nullptr;
    spied.reset();
    EXPECT_EQ(last->deregistered, 2);
  }
}

TEST(Grants, put_final_values_directly_into_the_output) {
  for (const char* spec : {"switch:2", "switch:5", "bcube:3,1", "torus:3x3"}) {
    SpiedWorld spied(spec);
    const auto size = static_cast<std::size_t>(spied.world.size());
    std::vector<std::vector<std::int64_t>> data(size, std::vector<std::int64_t>(9000));
    std::vector<Registration> registered;
    for (std::size_t rank = 0; rank + 1 < size; ++rank) registered.emplace_back(data[rank]);
    for (int i = 0; i < 4; ++i) spied.sum(data);
    int granted = 0;
    for (const auto& seen : spied.seen) granted += seen->granted;
    EXPECT_GT(granted, 0) << spec;
    // A rank without registered memory grants no access, but it can write into granted memory of others.
    EXPECT_EQ(spied.seen[size - 1]->registered, 0);
    EXPECT_GT(spied.seen[size - 1]->granted, 0) << spec;
  }
}

TEST(Grants, of_outstanding_operations_do_not_mix) {
  const std::uint64_t seed = test::seed();
  WorldOptions options{.credits = 1, .needs_registration = true};
  options.faults = {.delay = 0.3, .reorder = 0.5, .late_completion = 0.5, .queue_full = 0.1};
  World world("bcube:3,1", seed, options);
  constexpr int kOperations = 9;
  std::vector<std::vector<std::vector<std::int64_t>>> data(kOperations);
  std::vector<Registration> registered;
  std::vector<std::shared_ptr<Operation>> operations;
  for (auto& of_ranks : data) of_ranks.resize(9);
  for (Rank rank = 0; rank < 9; ++rank) {
    for (int o = 0; o < kOperations; ++o) {
      auto& mine = data[o][rank];
      mine.assign(static_cast<std::size_t>(100 + o * 331), rank + o);
      if (world.random()() % 4 != 0) registered.emplace_back(mine);
      operations.push_back(world[rank].team->start({.in = bytes_of(mine),
                                                    .out = bytes_of(mine),
                                                    .count = mine.size(),
                                                    .type = DataType::kInt64,
                                                    .op = ReduceOp::kSum}));
      for (std::uint64_t i = world.random()() % 3; i > 0; --i) world[rank].engine->progress();
    }
  }
  ASSERT_TRUE(world.run(operations));
  for (int o = 0; o < kOperations; ++o) {
    for (const auto& mine : data[o])
      ASSERT_EQ(mine, std::vector<std::int64_t>(mine.size(), 36 + 9 * o)) << "operation " << o;
  }
}

TEST(Grants, end_when_a_call_fails) {
  const std::uint64_t seed = test::seed();
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 300; ++trial) {
    WorldOptions options{.credits = 1 + static_cast<std::int32_t>(random() % 4), .needs_registration = true};
    options.faults = {.delay = 0.5, .reorder = 0.3, .late_completion = 0.5, .max_delay_steps = 60};
    World world("switch:3", random(), options);
    std::vector<std::vector<std::int64_t>> data(3, std::vector<std::int64_t>(3000, 1));
    std::vector<Registration> registered;
    std::vector<std::shared_ptr<Operation>> operations;
    for (Rank rank = 0; rank < 3; ++rank) {
      registered.emplace_back(data[rank]);
      operations.push_back(world[rank].team->start({.in = bytes_of(data[rank]),
                                                    .out = bytes_of(data[rank]),
                                                    .count = 3000,
                                                    .type = DataType::kInt64,
                                                    .op = ReduceOp::kSum}));
    }
    // Rank 0 fails at a random moment, and then reuses its memory.
    world.run([&, rounds = random() % 200]() mutable { return rounds-- == 0; });
    world[0].team->fail(Status::error(Code::kAborted, "given up"));
    ASSERT_TRUE(world.run({operations[0]}));
    std::fill(data[0].begin(), data[0].end(), 78);
    world.run([&, rounds = 300]() mutable { return rounds-- == 0; });
    ASSERT_EQ(data[0], std::vector<std::int64_t>(3000, 78)) << "trial " << trial;
    for (Rank rank = 1; rank < 3; ++rank) world[rank].team->fail(Status::error(Code::kAborted, "given up"));
    ASSERT_TRUE(world.run(operations));
  }
}

int num_registrations(const Seen& seen) {
  return static_cast<int>(seen.user_memory.size());
}

TEST(TemporaryRegistrations, put_final_values_directly_into_an_unregistered_output) {
  for (const char* spec : {"switch:2", "switch:5", "bcube:3,1", "torus:3x3"}) {
    SpiedWorld spied(spec, {.registers_freely = true});
    std::vector<std::vector<std::int64_t>> data(static_cast<std::size_t>(spied.world.size()),
                                                std::vector<std::int64_t>(9000));
    for (int call = 1; call <= 4; ++call) {
      spied.sum(data);
      for (const auto& seen : spied.seen) {
        // Registered once for each call, and deregistered at its end.
        EXPECT_EQ(seen->registered, call) << spec;
        EXPECT_EQ(num_registrations(*seen), 0) << spec;
      }
    }
    for (const auto& seen : spied.seen) EXPECT_GT(seen->granted, 0) << spec;
  }
}

TEST(TemporaryRegistrations, are_not_made_for_small_vectors) {
  SpiedWorld spied("switch:2", {.registers_freely = true});
  std::vector<std::vector<std::int64_t>> data(2, std::vector<std::int64_t>(kMinDirectBytes / 8 - 1));
  spied.sum(data);
  EXPECT_EQ(spied.seen[0]->registered, 0);
  EXPECT_EQ(spied.seen[0]->granted, 0);
}

TEST(TemporaryRegistrations, are_not_needed_if_the_transport_refuses_them) {
  SpiedWorld spied("switch:2", {.registers_freely = true});
  spied.seen[0]->refuses = true;
  std::vector<std::vector<std::int64_t>> data(2, std::vector<std::int64_t>(3000));
  spied.sum(data);
  EXPECT_EQ(spied.seen[1]->granted, 0);
  EXPECT_GT(spied.seen[0]->granted, 0);
}

TEST(TemporaryRegistrations, end_when_a_call_fails_and_keep_the_connections) {
  const std::uint64_t seed = test::seed();
  std::mt19937_64 random(seed);
  int late = 0;
  for (int trial = 0; trial < 300; ++trial) {
    WorldOptions options{.credits = 1 + static_cast<std::int32_t>(random() % 4), .registers_freely = true};
    options.faults = {.delay = 0.5, .reorder = 0.3, .late_completion = 0.5, .max_delay_steps = 60};
    SpiedWorld spied("switch:3", options);
    World& world = spied.world;
    std::vector<std::vector<std::int64_t>> data(3, std::vector<std::int64_t>(3000, 1));
    std::vector<std::shared_ptr<Operation>> operations;
    for (Rank rank = 0; rank < 3; ++rank) {
      operations.push_back(world[rank].team->start({.in = bytes_of(data[rank]),
                                                    .out = bytes_of(data[rank]),
                                                    .count = 3000,
                                                    .type = DataType::kInt64,
                                                    .op = ReduceOp::kSum}));
    }
    // At a random moment rank 0 fails, or rank 1 dies and rank 0 learns of it.
    const bool dies = random() % 2 == 0;
    world.run([&, rounds = random() % 200]() mutable { return rounds-- == 0; });
    if (dies) world.network().kill(1);
    world[0].team->fail(Status::error(Code::kAborted, "given up"));
    ASSERT_TRUE(world.run({operations[0]}));
    EXPECT_EQ(num_registrations(*spied.seen[0]), 0);
    std::fill(data[0].begin(), data[0].end(), 78);
    const int before = spied.seen[2]->granted;
    world.run([&, rounds = 300]() mutable { return rounds-- == 0; });
    late += spied.seen[2]->granted - before;
    ASSERT_EQ(data[0], std::vector<std::int64_t>(3000, 78)) << "trial " << trial;
    for (const Rank rank : {0, 2})
      for (const Status& error : world[rank].errors) EXPECT_TRUE(dies && error.rank == 1) << error.message;
    for (Rank rank = 1; rank < 3; ++rank) world[rank].team->fail(Status::error(Code::kAborted, "given up"));
    ASSERT_TRUE(world.run(operations));
    for (const auto& seen : spied.seen) EXPECT_EQ(num_registrations(*seen), 0);
  }
  EXPECT_GT(late, 0) << "no trial had a late write";
}

TEST(TemporaryRegistrations, end_when_the_team_is_destroyed_during_a_call) {
  const std::uint64_t seed = test::seed();
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 50; ++trial) {
    SpiedWorld spied("switch:2", {.registers_freely = true});
    std::vector<std::vector<std::int64_t>> data(2, std::vector<std::int64_t>(3000, 1));
    for (Rank rank = 0; rank < 2; ++rank)
      spied.world[rank].team->start({.in = bytes_of(data[rank]),
                                     .out = bytes_of(data[rank]),
                                     .count = 3000,
                                     .type = DataType::kInt64,
                                     .op = ReduceOp::kSum});
    spied.world.run([&, rounds = random() % 10]() mutable { return rounds-- == 0; });
    spied.world[0].team.reset();
    EXPECT_EQ(num_registrations(*spied.seen[0]), 0);
    std::fill(data[0].begin(), data[0].end(), 78);
    spied.world.run([&, rounds = 100]() mutable { return rounds-- == 0; });
    ASSERT_EQ(data[0], std::vector<std::int64_t>(3000, 78));
  }
}

}  // namespace
}  // namespace hips::exec
