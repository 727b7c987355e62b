#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "lib/base/visit_type.hpp"
#include "lib/reduce/reduce.hpp"
#include "tests/choices.hpp"
#include "tests/exec/plan_cases.hpp"
#include "tests/exec/world.hpp"

namespace hips::exec {
namespace {

using testing::World;
using testing::WorldOptions;

using testing::Case;
using testing::cases;

// Runs one allreduce of small integers, whose sums and products are exact, or wrap, in every type.
template <typename T>
void run_one(World& world, DataType type, ReduceOp op, std::uint64_t count, bool in_place,
             std::uint64_t salt) {
  constexpr bool kHalf = std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>;
  const auto element = [](int value) {
    return static_cast<T>(static_cast<std::conditional_t<kHalf, float, T>>(value));
  };
  const Rank size = world.size();
  std::vector<std::vector<T>> inputs(static_cast<std::size_t>(size)), outputs(static_cast<std::size_t>(size));
  std::vector<T> expected(count);
  for (Rank rank = 0; rank < size; ++rank) {
    inputs[rank].resize(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t hash = (i * 31 + static_cast<std::uint64_t>(rank) * 17 + salt) % 64;
      // Few factors differ from 1, so that products of many ranks stay exact. Sums of 16-bit floats are exact
      // up to 256 only.
      const auto small = kHalf ? static_cast<std::uint64_t>(hash < 3 ? hash : 0) : hash;
      inputs[rank][i] = element(static_cast<int>(op == ReduceOp::kProd ? (hash < 4 ? 2 : 1) : small));
    }
    outputs[rank] = in_place ? inputs[rank] : std::vector<T>(count, element(99));
  }
  // The result is exact in any order, so one fold of all inputs gives the expected values.
  std::vector<const std::byte*> operands;
  for (const auto& input : inputs) operands.push_back(reinterpret_cast<const std::byte*>(input.data()));
  reduce::fold(type, op, reinterpret_cast<std::byte*>(expected.data()), operands, count);
  std::vector<std::shared_ptr<Operation>> operations;
  for (Rank rank = 0; rank < size; ++rank) {
    const auto* in =
        reinterpret_cast<const std::byte*>(in_place ? outputs[rank].data() : inputs[rank].data());
    operations.push_back(world[rank].team->start({.in = in,
                                                  .out = reinterpret_cast<std::byte*>(outputs[rank].data()),
                                                  .count = count,
                                                  .type = type,
                                                  .op = op}));
    // As a user may: when an operation is done, its buffers belong to the user again.
    if (world.random()() % 4 == 0) world[rank].engine->progress();
  }
  std::vector<bool> overwritten(static_cast<std::size_t>(size), false);
  std::vector<std::vector<T>> results(static_cast<std::size_t>(size));
  ASSERT_TRUE(world.run([&] {
    bool all = true;
    for (Rank rank = 0; rank < size; ++rank) {
      if (!operations[rank]->done()) {
        all = false;
      } else if (!overwritten[rank]) {
        overwritten[rank] = true;
        results[rank] = outputs[rank];
        std::fill(outputs[rank].begin(), outputs[rank].end(), element(77));
        std::fill(inputs[rank].begin(), inputs[rank].end(), element(78));
      }
    }
    return all;
  })) << "rank 0 waits for "
      << operations[0]->waiting_text();
  for (Rank rank = 0; rank < size; ++rank) {
    ASSERT_TRUE(operations[rank]->status().ok()) << operations[rank]->status().message;
    ASSERT_TRUE(world[rank].errors.empty()) << world[rank].errors[0].message;
    ASSERT_TRUE(
        std::ranges::equal(std::as_bytes(std::span(results[rank])), std::as_bytes(std::span(expected))))
        << to_string(type) << " " << to_string(op) << " rank " << rank << " count " << count;
  }
}

void run_any(World& world, std::uint64_t count, bool in_place, std::uint64_t salt) {
  const auto type = static_cast<DataType>(salt / kNumReduceOps % kNumDataTypes);
  auto op = static_cast<ReduceOp>(salt % kNumReduceOps);
  // A plan of one rank does not reduce, so logical operations do not map values to 0 or 1. Communicators of
  // one rank use no plan.
  if (!applies_to(op, type) || (world.size() == 1 && op >= ReduceOp::kLand)) op = ReduceOp::kAvg;
  visit_type(type, [&]<typename T>(T) { run_one<T>(world, type, op, count, in_place, salt); });
}

class Allreduce : public ::testing::TestWithParam<Case> {};

TEST_P(Allreduce, is_exact_for_every_size_in_and_out_of_place) {
  const std::uint64_t seed = test::seed();
  World world(GetParam().spec, seed, {.request = GetParam().request});
  const auto n = static_cast<std::uint64_t>(world.size());
  for (std::uint64_t count :
       {std::uint64_t{0}, std::uint64_t{1}, n - 1, n, n + 1, std::uint64_t{101}, std::uint64_t{2003}}) {
    run_any(world, count, false, world.random()());
    run_any(world, count, true, world.random()());
    if (HasFatalFailure()) return;
  }
}

TEST_P(Allreduce, is_exact_with_one_credit_on_a_late_full_and_reordering_network) {
  const std::uint64_t seed = test::seed();
  std::mt19937_64 random(seed);
  WorldOptions options{.request = GetParam().request};
  options.credits = random() % 2 == 0 ? 1 : 1 + static_cast<std::int32_t>(random() % 5);
  options.segment_bytes = 1024;
  options.faults = {
      .delay = 0.2, .reorder = 0.3, .late_completion = 0.5, .queue_full = 0.2, .max_delay_steps = 12};
  World world(GetParam().spec, seed, options);
  for (std::uint64_t count : {std::uint64_t{3}, std::uint64_t{5003}}) {
    run_any(world, count, false, random());
    run_any(world, count, true, random());
    if (HasFatalFailure()) return;
  }
}

TEST_P(Allreduce, is_exact_if_the_nic_needs_registered_memory) {
  const std::uint64_t seed = test::seed();
  std::mt19937_64 random(seed);
  WorldOptions options{.request = GetParam().request};
  options.needs_registration = true;
  options.credits = 1 + static_cast<std::int32_t>(random() % 4);
  // The network may read sources at any time until completion, so a slot that is filled too early changes the
  // sums.
  options.faults = {
      .delay = 0.3, .reorder = 0.3, .late_completion = 0.7, .queue_full = 0.2, .max_delay_steps = 30};
  World world(GetParam().spec, seed, options);
  if (world.size() > 1) {
    EXPECT_GT(world[0].team->send_slot_bytes(), 0u);
    EXPECT_LE(world[0].team->send_slot_bytes(), std::size_t{8} << 20);
  }
  for (std::uint64_t count : {std::uint64_t{1}, std::uint64_t{5003}}) {
    run_any(world, count, false, random());
    run_any(world, count, true, random());
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, Allreduce, ::testing::ValuesIn(hips::test::or_every_nth(cases(), 8)),
                         testing::name_of);

TEST(Executor, runs_outstanding_operations_in_the_order_of_the_communicator) {
  const std::uint64_t seed = test::seed();
  WorldOptions options{.credits = 1};
  options.faults = {.delay = 0.2, .reorder = 0.3, .late_completion = 0.5, .queue_full = 0.1};
  World world("bcube:3,1", seed, options);
  constexpr int kOperations = 6;
  const std::uint64_t counts[kOperations] = {1000, 0, 7, 3000, 1, 500};
  std::vector<std::vector<std::vector<std::int64_t>>> data(kOperations);
  std::vector<std::shared_ptr<Operation>> operations;
  for (int o = 0; o < kOperations; ++o) data[o].resize(static_cast<std::size_t>(world.size()));
  for (Rank rank = 0; rank < world.size(); ++rank) {
    for (int o = 0; o < kOperations; ++o) {
      data[o][rank].assign(counts[o], rank + o);
      auto* bytes = reinterpret_cast<std::byte*>(data[o][rank].data());
      operations.push_back(world[rank].team->start(
          {.in = bytes, .out = bytes, .count = counts[o], .type = DataType::kInt64, .op = ReduceOp::kSum}));
      // Ranks run ahead of each other by any number of operations.
      for (std::uint64_t i = world.random()() % 3; i > 0; --i) world[rank].engine->progress();
    }
  }
  ASSERT_TRUE(world.run(operations));
  for (int o = 0; o < kOperations; ++o) {
    for (Rank rank = 0; rank < world.size(); ++rank) {
      const std::vector<std::int64_t> expected(counts[o], 36 + 9 * o);
      ASSERT_EQ(data[o][rank], expected) << "operation " << o << " rank " << rank;
    }
  }
}

TEST(Executor, gives_equal_bits_on_all_ranks_also_for_nan_and_signed_zero) {
  const std::uint64_t seed = test::seed();
  for (const Case& tested : hips::test::or_every_nth(cases(), 2)) {
    World world(tested.spec, seed, {.request = tested.request});
    for (int op = 0; op <= static_cast<int>(ReduceOp::kAvg); ++op) {
      constexpr std::uint64_t kCount = 700;
      std::vector<std::vector<float>> data(static_cast<std::size_t>(world.size()));
      std::vector<std::shared_ptr<Operation>> operations;
      for (auto& vector : data) {
        for (std::uint64_t i = 0; i < kCount; ++i) {
          const std::uint64_t r = world.random()();
          float value = static_cast<float>(r % 1000) / 7.0F;
          if (r % 5 == 0)
            value = std::bit_cast<float>(0x7fc00000U | static_cast<std::uint32_t>(r >> 40U & 0x3fffffU));
          if (r % 5 == 1) value = -0.0F;
          if (r % 5 == 2) value = 0.0F;
          if (r % 31 == 3) value = -std::numeric_limits<float>::infinity();
          if (r % 31 == 4) value = std::numeric_limits<float>::infinity();
          vector.push_back(value);
        }
      }
      for (Rank rank = 0; rank < world.size(); ++rank) {
        auto* bytes = reinterpret_cast<std::byte*>(data[rank].data());
        operations.push_back(world[rank].team->start({.in = bytes,
                                                      .out = bytes,
                                                      .count = kCount,
                                                      .type = DataType::kFloat32,
                                                      .op = static_cast<ReduceOp>(op)}));
      }
      ASSERT_TRUE(world.run(operations));
      for (Rank rank = 1; rank < world.size(); ++rank) {
        ASSERT_EQ(0, std::memcmp(data[0].data(), data[rank].data(), kCount * sizeof(float)))
            << tested.text() << " op " << op << " rank " << rank;
      }
    }
  }
}

TEST(Executor, moves_no_data_if_memory_is_phantom) {
  const std::uint64_t seed = test::seed();
  World world("bcube:4,1", seed, {.credits = 2, .segment_bytes = 1U << 20U, .phantom = true});
  std::vector<std::shared_ptr<Operation>> operations;
  for (Rank rank = 0; rank < world.size(); ++rank) {
    operations.push_back(world[rank].team->start(
        {.count = test::runs_a_sample() ? 1ULL << 24U : 1ULL << 28U, .type = DataType::kFloat32}));
  }
  ASSERT_TRUE(world.run(operations));
  for (auto& operation : operations) EXPECT_TRUE(operation->status().ok());
}

}  // namespace
}  // namespace hips::exec
