#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/exec/world.hpp"

namespace hips::exec {
namespace {

using ::testing::HasSubstr;
using testing::World;

struct Call {
  std::uint64_t count = 100;
  DataType type = DataType::kInt32;
  ReduceOp op = ReduceOp::kSum;
};

std::shared_ptr<Operation> start(World& world, Rank rank, std::vector<std::byte>& buffer, const Call& call) {
  buffer.assign(call.count * size_of(call.type), std::byte{0});
  return world[rank].team->start(
      {.in = buffer.data(), .out = buffer.data(), .count = call.count, .type = call.type, .op = call.op});
}

bool any_error(World& world) {
  for (Rank rank = 0; rank < world.size(); ++rank) {
    if (!world[rank].errors.empty()) return true;
  }
  return false;
}

class Mismatch : public ::testing::TestWithParam<Call> {};

TEST_P(Mismatch, of_one_rank_is_found_before_any_wrong_result) {
  const std::uint64_t seed = test::seed();
  for (Rank odd = 0; odd < 9; ++odd) {
    World world("bcube:3,1", seed + static_cast<std::uint64_t>(odd));
    std::vector<std::vector<std::byte>> buffers(9);
    std::vector<std::shared_ptr<Operation>> operations;
    for (Rank rank = 0; rank < 9; ++rank) {
      operations.push_back(start(world, rank, buffers[rank], rank == odd ? GetParam() : Call{}));
    }
    ASSERT_TRUE(world.run([&] { return any_error(world); }));
    std::string text;
    for (Rank rank = 0; rank < 9; ++rank) {
      for (const Status& status : world[rank].errors) {
        EXPECT_EQ(status.code, Code::kMismatch);
        text = status.message;
      }
    }
    EXPECT_THAT(text, HasSubstr("allreduce #1: rank "));
    EXPECT_THAT(text, HasSubstr("called with count"));
    EXPECT_THAT(text, HasSubstr("rank " + std::to_string(odd) + " "));
    // The communicator is told; every operation ends with that status, and so does every later one.
    for (Rank rank = 0; rank < 9; ++rank) world[rank].team->fail(Status::error(Code::kMismatch, "agreed"));
    ASSERT_TRUE(world.run(operations));
    for (auto& operation : operations) EXPECT_FALSE(operation->status().ok());
    auto later = start(world, 0, buffers[0], Call{});
    ASSERT_TRUE(world.run({later}));
    EXPECT_EQ(later->status().message, "agreed");
  }
}

INSTANTIATE_TEST_SUITE_P(Signatures, Mismatch,
                         ::testing::Values(Call{.count = 99}, Call{.count = 1}, Call{.count = 100000},
                                           Call{.type = DataType::kFloat32}, Call{.type = DataType::kInt64},
                                           Call{.op = ReduceOp::kMax}));

TEST(Failure, a_dead_peer_is_named_with_what_was_awaited_from_it) {
  const std::uint64_t seed = test::seed();
  World world("bcube:3,1", seed);
  std::vector<std::vector<std::byte>> buffers(9);
  std::vector<std::shared_ptr<Operation>> operations;
  // Rank 4 dies without having called.
  for (Rank rank = 0; rank < 9; ++rank) {
    if (rank != 4) operations.push_back(start(world, rank, buffers[rank], Call{}));
  }
  world.network().kill(4);
  ASSERT_TRUE(world.run([&] { return any_error(world); }));
  bool named = false;
  for (Rank rank = 0; rank < 9; ++rank) {
    for (const Status& status : world[rank].errors) {
      EXPECT_EQ(status.code, Code::kPeerLost);
      EXPECT_EQ(status.rank, 4);
      named |= status.message.find("waiting for rank 4") != std::string::npos;
    }
  }
  EXPECT_TRUE(named);
}

TEST(Failure, a_peer_that_left_after_its_last_call_is_no_error) {
  const std::uint64_t seed = test::seed();
  World world("bcube:3,1", seed);
  std::vector<std::vector<std::byte>> buffers(9);
  std::vector<std::shared_ptr<Operation>> operations;
  for (Rank rank = 0; rank < 9; ++rank) operations.push_back(start(world, rank, buffers[rank], Call{}));
  ASSERT_TRUE(world.run([&] {
    for (Rank rank = 0; rank < 9; ++rank) {
      if (!operations[rank]->done()) continue;
      // Whoever is done says goodbye at once.
      for (Rank other = 0; other < 9; ++other) {
        if (other != rank) world[other].team->peer_left(rank);
      }
    }
    return std::all_of(operations.begin(), operations.end(), [](auto& o) { return o->done(); });
  }));
  EXPECT_FALSE(any_error(world));
  for (auto& operation : operations) EXPECT_TRUE(operation->status().ok());
}

TEST(Failure, a_peer_that_left_before_a_call_is_an_error_in_that_call) {
  const std::uint64_t seed = test::seed();
  World world("bcube:3,1", seed);
  std::vector<std::vector<std::byte>> buffers(9);
  for (Rank rank = 1; rank < 9; ++rank) world[rank].team->peer_left(0);
  std::vector<std::shared_ptr<Operation>> operations;
  for (Rank rank = 1; rank < 9; ++rank) operations.push_back(start(world, rank, buffers[rank], Call{}));
  ASSERT_TRUE(world.run([&] { return any_error(world); }));
  for (Rank rank = 1; rank < 9; ++rank) {
    for (const Status& status : world[rank].errors) {
      EXPECT_EQ(status.rank, 0);
      EXPECT_THAT(status.message, HasSubstr("rank 0 left without taking part"));
    }
  }
}

TEST(Failure, late_is_only_late_whatever_the_clock_says) {
  const std::uint64_t seed = test::seed();
  ManualClock clock;
  World world("bcube:3,1", seed, {.clock = &clock});
  std::vector<std::vector<std::byte>> buffers(9);
  std::vector<std::shared_ptr<Operation>> operations;
  for (Rank rank = 0; rank < 8; ++rank) operations.push_back(start(world, rank, buffers[rank], Call{}));
  // Rank 8 arrives 90 s after the others.
  for (int second = 0; second < 90; ++second) {
    clock.advance_ns(1'000'000'000);
    world.run([] { return false; }, 3);
  }
  EXPECT_FALSE(any_error(world));
  EXPECT_THAT(operations[7]->waiting_for(), ::testing::Contains(8));
  operations.push_back(start(world, 8, buffers[8], Call{}));
  ASSERT_TRUE(world.run(operations));
  for (auto& operation : operations) EXPECT_TRUE(operation->status().ok());
}

TEST(Failure, a_users_deadline_ends_the_wait_and_names_who_is_lacking) {
  const std::uint64_t seed = test::seed();
  World world("switch:2", seed);
  std::vector<std::byte> buffer;
  auto operation = start(world, 0, buffer, Call{});
  const std::int64_t now = world[0].engine->clock().now_ns();
  const Status status = world[0].engine->wait(*operation, {.deadline_ns = now + 20'000'000});
  EXPECT_EQ(status.code, Code::kTimeout);
  EXPECT_THAT(status.message, HasSubstr("rank 1"));
  EXPECT_FALSE(operation->done());
}

TEST(Failure, destroying_a_team_with_work_in_flight_ends_that_work) {
  const std::uint64_t seed = test::seed();
  World world("bcube:3,1", seed);
  std::vector<std::byte> buffer;
  auto operation = start(world, 0, buffer, Call{});
  world[0].engine->progress();
  world[0].team.reset();
  ASSERT_TRUE(operation->done());
  EXPECT_EQ(operation->status().code, Code::kAborted);
}

}  // namespace
}  // namespace hips::exec
