#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tests/exec/passing_transport.hpp"
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

TEST_P(Mismatch, is_reported_before_any_wrong_result) {
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
    // The communicator gets the error. Every operation ends with that status, and so does every later one.
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

TEST(Failure, error_names_the_dead_peer_and_its_missing_message) {
  const std::uint64_t seed = test::seed();
  World world("bcube:3,1", seed);
  std::vector<std::vector<std::byte>> buffers(9);
  std::vector<std::shared_ptr<Operation>> operations;
  // Rank 4 dies before it calls.
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
      // A rank that is done leaves immediately.
      for (Rank other = 0; other < 9; ++other) {
        if (other != rank) world[other].team->peer_left(rank);
      }
    }
    return std::all_of(operations.begin(), operations.end(), [](auto& o) { return o->done(); });
  }));
  EXPECT_FALSE(any_error(world));
  for (auto& operation : operations) EXPECT_TRUE(operation->status().ok());
}

TEST(Failure, a_peer_that_left_before_a_call_fails_that_call) {
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

/// Withholds completions, and can report that a peer is gone. This is the case in which the last
/// acknowledgement was lost and the peer has closed in the meantime.
class DeafTransport final : public testing::PassingTransport {
 public:
  struct State {
    bool deaf = false;
    std::optional<transport::PeerId> gone;
  };
  DeafTransport(std::unique_ptr<transport::Transport> inner, State& state)
      : PassingTransport(std::move(inner)), state_(state) {}

  std::size_t poll(std::span<transport::Event> events) override {
    if (state_.gone) {
      events[0] = {};
      events[0].kind = transport::Event::Kind::kPeerDead;
      events[0].peer = *std::exchange(state_.gone, {});
      events[0].error = Status::error(Code::kPeerLost, "it closed its connection", Scope::kPeer);
      return 1;
    }
    const std::size_t count = PassingTransport::poll(events);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (!state_.deaf || events[i].kind != transport::Event::Kind::kCompletion)
        std::swap(events[kept++], events[i]);
    }
    return kept;
  }

 private:
  State& state_;
};

/// Two ranks. Rank 1 gets no completions for its requests; rank 0 is done with its call.
class Unacknowledged : public ::testing::Test {
 protected:
  Unacknowledged() {
    operations_ = {start(world_, 0, buffers_[0], Call{}), start(world_, 1, buffers_[1], Call{})};
    EXPECT_TRUE(world_.run({operations_[0]}));
    world_.run([] { return false; }, 100);
    EXPECT_FALSE(operations_[1]->done());
    EXPECT_THAT(operations_[1]->waiting_text(), HasSubstr("rank 0 to acknowledge what was sent"));
  }
  void close_connection() { state_.gone = world_[1].engine->peer_for(0, 0, 0); }

  DeafTransport::State state_{.deaf = true, .gone = {}};
  World world_{
      "switch:2", test::seed(), {.needs_registration = true, .wrap = [this, rank = 0](auto inner) mutable {
                                   std::unique_ptr<transport::Transport> made = std::move(inner);
                                   if (rank++ == 1)
                                     made = std::make_unique<DeafTransport>(std::move(made), state_);
                                   return made;
                                 }}};
  std::vector<std::vector<std::byte>> buffers_{2};
  std::vector<std::shared_ptr<Operation>> operations_;
};

TEST_F(Unacknowledged, segments_count_as_received_if_the_peer_closed_and_then_left) {
  close_connection();
  world_.run([] { return false; }, 100);
  EXPECT_FALSE(operations_[1]->done());
  world_[1].team->peer_left(0);
  ASSERT_TRUE(world_.run(operations_));
  EXPECT_TRUE(operations_[1]->status().ok()) << operations_[1]->status().message;
}

TEST_F(Unacknowledged, segments_count_as_received_if_the_peer_left_and_then_closed) {
  world_[1].team->peer_left(0);
  world_.run([] { return false; }, 100);
  EXPECT_FALSE(operations_[1]->done());
  EXPECT_TRUE(world_[1].errors.empty());
  close_connection();
  ASSERT_TRUE(world_.run(operations_));
  EXPECT_TRUE(operations_[1]->status().ok()) << operations_[1]->status().message;
}

TEST_F(Unacknowledged, segments_for_a_dead_peer_end_with_the_communicator) {
  close_connection();
  world_.run([] { return false; }, 100);
  ASSERT_FALSE(world_[1].errors.empty());
  EXPECT_FALSE(operations_[1]->done());
  world_[1].team->fail(Status::error(Code::kPeerLost, "agreed"));
  ASSERT_TRUE(world_.run(operations_));
  EXPECT_EQ(operations_[1]->status().message, "agreed");
}

TEST(Failure, a_late_rank_is_no_failure) {
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

TEST(Failure, a_deadline_ends_the_wait_and_names_the_missing_rank) {
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

/// Notes the vectors of operations that have ended without their peers.
class NotingTransport final : public testing::PassingTransport {
 public:
  using Taken = std::vector<std::pair<const std::byte*, std::size_t>>;
  NotingTransport(std::unique_ptr<transport::Transport> inner, Taken& taken)
      : PassingTransport(std::move(inner)), taken_(taken) {}
  void take_back(std::span<const std::byte> memory) noexcept override {
    taken_.emplace_back(memory.data(), memory.size());
  }

 private:
  Taken& taken_;
};

TEST(Failure, takes_back_the_vectors_of_outstanding_operations_and_no_others) {
  NotingTransport::Taken taken;
  World world("switch:2", test::seed(),
              {.needs_registration = true, .wrap = [&, rank = 0](auto inner) mutable {
                 std::unique_ptr<transport::Transport> made = std::move(inner);
                 if (rank++ == 0) made = std::make_unique<NotingTransport>(std::move(made), taken);
                 return made;
               }});
  std::vector<std::vector<std::byte>> buffers(2);
  const std::vector complete{start(world, 0, buffers[0], Call{}), start(world, 1, buffers[1], Call{})};
  ASSERT_TRUE(world.run(complete));
  std::vector<std::byte> buffer;
  auto operation = start(world, 0, buffer, Call{});
  world[0].engine->progress();
  EXPECT_TRUE(taken.empty());
  world[0].team->fail(Status::error(Code::kPeerLost, "agreed"));
  ASSERT_TRUE(world.run({operation}));
  ASSERT_FALSE(taken.empty());
  for (const auto& [memory, bytes] : taken) {
    EXPECT_EQ(memory, buffer.data());
    EXPECT_EQ(bytes, buffer.size());
  }
}

TEST(Failure, destroying_a_team_ends_its_outstanding_operations) {
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
