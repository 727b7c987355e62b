// Memory that runs out while operations make progress: it fails one team, and nothing throws.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "tests/choices.hpp"
#include "tests/exec/passing_transport.hpp"
#include "tests/exec/world.hpp"

namespace {

constexpr std::int64_t kAll = -1, kOneHasFailed = -2;
/// Allocations of this thread that succeed before one fails; negative: all succeed.
thread_local std::int64_t allocations_left = kAll;
thread_local std::int64_t num_allocations = 0;
/// Allocations that succeed after that one before another fails; negative: all succeed.
thread_local std::int64_t left_after_failure = kAll;

}  // namespace

// Not inlined: otherwise the compiler would see malloc behind new, and warn about delete.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  if (allocations_left == 0) {
    const std::int64_t left = std::exchange(left_after_failure, kAll);
    allocations_left = left == kAll ? kOneHasFailed : left;
    throw std::bad_alloc();
  }
  if (allocations_left > 0) --allocations_left;
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

namespace hips::exec {
namespace {

using testing::World;

/// Has memory: real transports allocate nothing when they post and poll.
class WithMemory final : public testing::PassingTransport {
 public:
  using PassingTransport::PassingTransport;
  std::size_t post(std::span<const transport::WorkRequest> requests) override {
    const std::int64_t left = std::exchange(allocations_left, kAll);
    const std::size_t taken = PassingTransport::post(requests);
    allocations_left = left;
    return taken;
  }
  std::size_t poll(std::span<transport::Event> events) override {
    const std::int64_t left = std::exchange(allocations_left, kAll);
    const std::size_t count = PassingTransport::poll(events);
    allocations_left = left;
    return count;
  }
};

constexpr Rank kSize = 3;
constexpr std::uint64_t kCount = 3000;

using Data = std::vector<std::vector<std::int64_t>>;

std::shared_ptr<Operation> start(Team& team, Rank rank, Data& data) {
  auto& mine = data[static_cast<std::size_t>(rank)];
  mine.assign(kCount, rank);
  auto* const bytes = reinterpret_cast<std::byte*>(mine.data());
  return team.start(
      {.in = bytes, .out = bytes, .count = kCount, .type = DataType::kInt64, .op = ReduceOp::kSum});
}

/// Does what may fail after `left` allocations, which counts down; kOneHasFailed once the last one has failed.
template <typename Work>
void with_allocations(std::int64_t& left, Work work) {
  allocations_left = left;
  work();
  left = std::exchange(allocations_left, kAll);
}

/// Two teams compute on the same engines. On rank 0 the n-th allocation of the progress after the start fails, and another one
/// `then` allocations later; kAll: no other. Returns whether a team failed.
bool fails_at(std::int64_t n, bool needs_registration, std::int64_t then) {
  left_after_failure = then;
  World world("switch:3", 7, {.credits = 2, .needs_registration = needs_registration, .wrap = [](auto inner) {
                                return std::make_unique<WithMemory>(std::move(inner));
                              }});
  auto others = world.make_more_teams(8);
  Data data(kSize), other_data(kSize);
  std::vector<std::shared_ptr<Operation>> operations, other_operations;
  std::int64_t left = n;
  for (Rank rank = 0; rank < kSize; ++rank) {
    other_operations.push_back(start(*others[static_cast<std::size_t>(rank)], rank, other_data));
    std::int64_t none = kAll;
    with_allocations(rank == 0 ? left : none, [&] {
      try {
        operations.push_back(start(*world[rank].team, rank, data));
      } catch (const std::bad_alloc&) {
        // Not started, and its caller knows.
      }
    });
  }
  bool failed = left == kOneHasFailed;
  const bool is_started = operations.size() == static_cast<std::size_t>(kSize);
  const auto all_done = [](const auto& list) {
    return std::all_of(list.begin(), list.end(), [](const auto& one) { return one->done(); });
  };
  for (int round = 0; round < 2000; ++round) {
    for (Rank rank = 0; rank < kSize; ++rank) {
      std::int64_t none = kAll;
      with_allocations(rank == 0 && !failed ? left : none,
                       [&] { EXPECT_NO_THROW(world[rank].engine->progress()); });
      failed |= left == kOneHasFailed;
    }
    // As the control plane does.
    const Status agreed = Status::error(Code::kOutOfMemory, "agreed");
    const bool first_failed = !is_started || world[0].team->failed() || !world[0].errors.empty();
    const bool other_failed = others[0]->failed() || !world.other_errors.empty();
    for (Rank rank = 0; rank < kSize; ++rank) {
      if (first_failed) world[rank].team->fail(agreed);
      if (other_failed) others[static_cast<std::size_t>(rank)]->fail(agreed);
    }
    if (all_done(operations) && all_done(other_operations)) {
      EXPECT_FALSE(first_failed && other_failed && then == kAll) << "two teams failed; allocation " << n;
      for (const auto& status : world[0].errors) EXPECT_EQ(status.code, Code::kOutOfMemory) << status.message;
      for (Rank rank = 0; rank < kSize; ++rank) {
        const auto r = static_cast<std::size_t>(rank);
        if (!first_failed) {
          EXPECT_EQ(data[r], std::vector<std::int64_t>(kCount, 3)) << n;
        }
        if (!other_failed) {
          EXPECT_TRUE(other_operations[r]->status().ok()) << other_operations[r]->status().message;
          EXPECT_EQ(other_data[r], std::vector<std::int64_t>(kCount, 3)) << n;
        }
      }
      return first_failed || other_failed;
    }
  }
  ADD_FAILURE() << "an operation does not end; allocation " << n;
  return false;
}

class WithoutMemory : public ::testing::TestWithParam<bool> {
 protected:
  static void expect_ends(std::int64_t then) {
    int num_failed = 0;
    // An allocation that is only an attempt, such as that of a trace, need not fail the call.
    for (std::int64_t n = 0, survived = 0; survived < 50 && n < 3000 && !HasFailure(); ++n) {
      const bool failed = fails_at(n, GetParam(), then);
      num_failed += failed ? 1 : 0;
      survived = failed ? 0 : survived + 1;
    }
    EXPECT_GT(num_failed, 20);
  }
};

TEST_P(WithoutMemory, at_any_moment_one_team_fails_and_the_other_computes) {
  expect_ends(kAll);
}

TEST_P(WithoutMemory, every_call_ends_if_the_failure_lacks_memory_too) {
  for (const std::int64_t then : test::or_every_nth(std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7}, 4))
    if (!HasFailure()) expect_ends(then);
}

TEST(Allocations, of_repeated_calls_are_none_for_a_thousand_sizes) {
  World world("switch:3", 7,
              {.wrap = [](auto inner) { return std::make_unique<WithMemory>(std::move(inner)); }});
  std::vector<std::vector<std::int64_t>> data(kSize, std::vector<std::int64_t>(1000, 1));
  std::int64_t num_in_last_pass = 0;
  for (int pass = 0; pass < 4; ++pass) {
    num_in_last_pass = 0;
    for (std::uint64_t count = 1; count <= 1000; ++count) {
      std::vector<std::shared_ptr<Operation>> operations(kSize);
      for (Rank rank = 0; rank < kSize; ++rank) {
        const std::int64_t before = num_allocations;
        auto* const bytes = reinterpret_cast<std::byte*>(data[static_cast<std::size_t>(rank)].data());
        operations[static_cast<std::size_t>(rank)] = world[rank].team->start(
            {.in = bytes, .out = bytes, .count = count, .type = DataType::kInt64, .op = ReduceOp::kMax});
        if (rank == 0) num_in_last_pass += num_allocations - before;
      }
      ASSERT_TRUE(world.run(operations));
    }
  }
  EXPECT_LT(num_in_last_pass, 100) << "a start allocates, although its layout is known";
}

INSTANTIATE_TEST_SUITE_P(Operations, WithoutMemory, ::testing::Bool(), [](const auto& test) {
  return test.param ? "sent_from_registered_memory" : "sent_from_any_memory";
});

}  // namespace
}  // namespace hips::exec
