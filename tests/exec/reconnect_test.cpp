// Connections that break between living processes: later communicators work, and no call waits for ever.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "lib/base/os/socket.hpp"
#include "tests/exec/passing_transport.hpp"
#include "tests/exec/world.hpp"
#include "transports/shm/shm.hpp"
#include "transports/tcp/tcp.hpp"

namespace hips::exec {
namespace {

using ::testing::HasSubstr;
using testing::World;
using testing::WorldOptions;

struct Backend {
  const char* name;
  WorldOptions options;
};

class Reconnect : public ::testing::TestWithParam<Backend> {
 protected:
  static constexpr std::int64_t kCount = 3000;

  std::shared_ptr<Operation> start(Rank rank) {
    auto& mine = data_[static_cast<std::size_t>(rank)];
    mine.resize(kCount);
    std::iota(mine.begin(), mine.end(), rank);
    auto* const bytes = reinterpret_cast<std::byte*>(mine.data());
    return world_[rank].team->start(
        {.in = bytes, .out = bytes, .count = kCount, .type = DataType::kInt64, .op = ReduceOp::kSum});
  }
  std::vector<std::shared_ptr<Operation>> start_all() {
    std::vector<std::shared_ptr<Operation>> operations;
    for (Rank rank = 0; rank < world_.size(); ++rank) operations.push_back(start(rank));
    return operations;
  }
  void expect_exact_sum() {
    const auto operations = start_all();
    ASSERT_TRUE(world_.run(operations)) << operations.front()->waiting_text();
    for (Rank rank = 0; rank < world_.size(); ++rank) {
      ASSERT_TRUE(operations[static_cast<std::size_t>(rank)]->status().ok());
      for (std::int64_t i = 0; i < kCount; ++i)
        ASSERT_EQ(data_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(i)], 3 * i + 3);
    }
  }
  /// Rank 1 loses its endpoint for rank 0, and rank 0 hears of it.
  void break_one_endpoint() { world_[1].transport->close(world_.peer_id(1, 0)); }
  bool is_reported() {
    return world_.run([&] {
      for (Rank rank = 0; rank < world_.size(); ++rank)
        if (!world_[rank].errors.empty()) return true;
      return false;
    });
  }
  /// As the control plane does.
  void fail_all() {
    for (Rank rank = 0; rank < world_.size(); ++rank)
      world_[rank].team->fail(Status::error(Code::kPeerLost, "agreed"));
  }

  World world_{"switch:3", test::seed(), GetParam().options};
  std::vector<std::vector<std::int64_t>> data_{3};
};

TEST_P(Reconnect, lets_the_next_communicator_compute_over_the_link_that_broke) {
  expect_exact_sum();
  for (std::uint64_t id = 100; id < 104; ++id) {
    const auto operations = start_all();
    break_one_endpoint();
    ASSERT_TRUE(is_reported()) << operations[0]->waiting_text();
    fail_all();
    ASSERT_TRUE(world_.run(operations));
    world_.make_teams(id);
    expect_exact_sum();
  }
}

TEST_P(Reconnect, is_agreed_on_if_only_one_end_knows_that_the_link_broke) {
  expect_exact_sum();
  // All credits have come back, so that rank 1 can send.
  ASSERT_FALSE(world_.run([] { return false; }, 100));
  break_one_endpoint();
  // Rank 0 makes no progress before the next set-up; rank 1 may have to send before it notices.
  const auto lost = start(1);
  for (int round = 0; round < 200; ++round) world_[1].engine->progress();
  fail_all();
  world_.make_teams(100);
  expect_exact_sum();
}

TEST_P(Reconnect, is_not_needed_for_a_call_to_end_that_begins_after_the_link_broke) {
  expect_exact_sum();
  break_one_endpoint();
  ASSERT_TRUE(is_reported());
  for (Rank rank = 0; rank < world_.size(); ++rank) world_[rank].errors.clear();
  // Rank 0 knows of the loss. It learns again from the next call that this team lost data for rank 1.
  const auto operations = start_all();
  ASSERT_TRUE(is_reported()) << operations[0]->waiting_text();
  EXPECT_THAT(world_[0].errors.at(0).message, HasSubstr("rank 1 is lost"));
  EXPECT_EQ(world_[0].errors[0].rank, 1);
  fail_all();
  ASSERT_TRUE(world_.run(operations));
}

// While a communicator is set up, nobody listens to its errors yet.
TEST_P(Reconnect, concerns_no_team_that_has_not_opened_its_connections) {
  expect_exact_sum();
  Team::Config config = world_.config(0, 100);
  std::vector<std::string> errors;
  config.on_error = [&](const Status& status) { errors.push_back(status.message); };
  const auto beginner = value_or_throw(Team::create(*world_[0].engine, std::move(config)));
  (void)beginner->offer();
  break_one_endpoint();
  ASSERT_TRUE(is_reported());
  EXPECT_EQ(errors, std::vector<std::string>());
}

/// Counts registrations.
class CountingTransport final : public testing::PassingTransport {
 public:
  CountingTransport(std::unique_ptr<transport::Transport> inner, int& count)
      : PassingTransport(std::move(inner)), count_(count) {}
  Result<transport::Region> register_memory(const transport::MemoryDesc& memory) override {
    ++count_;
    return PassingTransport::register_memory(memory);
  }

 private:
  int& count_;
};

TEST(ReconnectedTeams, use_the_staging_of_those_that_failed) {
  int num_registered = 0;
  World world("switch:2", 7, {.needs_registration = true, .wrap = [&](auto inner) {
                                return std::make_unique<CountingTransport>(std::move(inner), num_registered);
                              }});
  const int before = num_registered;
  for (std::uint64_t id = 100; id < 300; ++id) {
    world[1].transport->close(world.peer_id(1, 0));
    ASSERT_TRUE(world.run([&] { return !world[0].errors.empty(); }));
    for (Rank rank = 0; rank < 2; ++rank) world[rank].team->fail(Status::error(Code::kPeerLost, "agreed"));
    for (Rank rank = 0; rank < 2; ++rank) world[rank].engine->progress();
    world.make_teams(id);
  }
  EXPECT_LE(num_registered, before + 2) << "staging grows with each failure";
}

INSTANTIATE_TEST_SUITE_P(
    Over, Reconnect,
    ::testing::Values(Backend{"inproc", {.faults = {.delay = 0.3, .reorder = 0.3}}},
                      Backend{"inproc_with_registration", {.needs_registration = true}},
                      Backend{"tcp",
                              {.make_transport =
                                   [] {
                                     return tcp::create({.address = any_address(AF_INET, INADDR_LOOPBACK),
                                                         .device = "lo"})
                                         .value();
                                   }}},
                      Backend{"shm", {.make_transport = [] { return shm::create({}).value(); }}}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace hips::exec
