// Communicators of one process that connect its ports with the peers' ports in different ways.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "lib/plan/steps/peer_link.hpp"
#include "tests/exec/spy_transport.hpp"
#include "tests/exec/world.hpp"

namespace hips::exec::testing {
namespace {

constexpr Rank kSize = 3;

/// Counts its polls.
class PollCounter final : public PassingTransport {
 public:
  PollCounter(std::unique_ptr<transport::Transport> inner, int& polls)
      : PassingTransport(std::move(inner)), polls_(polls) {}
  std::size_t poll(std::span<transport::Event> events) override {
    ++polls_;
    return PassingTransport::poll(events);
  }

 private:
  int& polls_;
};

/// Three processes with two ports each.
class Ports : public ::testing::Test {
 protected:
  struct Process {
    std::unique_ptr<Engine> engine;
    std::vector<transport::Transport*> ports;
  };
  using Teams = std::vector<std::unique_ptr<Team>>;

  void SetUp() override {
    network_ = value_or_throw(inproc::Network::create({.random = &random_,
                                                       .faults = {.delay = 0.3, .reorder = 0.3},
                                                       .attaches_memory = false,
                                                       .needs_local_registration = true}));
    for (Rank rank = 0; rank < kSize; ++rank) {
      Process process{std::make_unique<Engine>(Engine::Options{}), {}};
      for (const Rail port : {0, 1})
        process.ports.push_back(process.engine->add_transport(std::make_unique<PollCounter>(
            std::make_unique<SpyTransport>(network_->make_transport(rank, port), seen_),
            polls_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(port)])));
      processes_.push_back(std::move(process));
    }
  }

  /// Creates a communicator of all processes.
  Teams make(std::uint64_t id, const std::string& spec,
             const std::vector<std::string>& algorithms = {"hips"}) {
    const Topology topology = parse_topology(spec);
    std::vector<std::shared_ptr<PlanBuilder>> builders;
    for (const std::string& algorithm : algorithms)
      builders.push_back(value_or_throw(plan::make_builder(topology, {.algorithm = algorithm})));
    Teams teams;
    for (Rank rank = 0; rank < kSize; ++rank) {
      Process& process = processes_[static_cast<std::size_t>(rank)];
      Team::Config config;
      config.id = id;
      config.rank = rank;
      config.size = kSize;
      config.arrives_by_same_nic = plan::nics_lead_everywhere(topology);
      for (const auto& builder : builders) {
        config.plans.push_back({std::make_shared<const PlanShape>(builder->shape()),
                                [builder, rank] { return builder->program(rank); }});
      }
      config.route_to = [&process](Rank peer) {
        const auto uid = static_cast<std::uint64_t>(peer);
        return Team::Route{{process.engine->peer_for(1, uid, 0), process.engine->peer_for(1, uid, 1)},
                           process.ports};
      };
      config.max_segment_bytes = 1024;
      config.phantom = is_phantom_;
      config.on_error = [this](const Status& status) { errors_.push_back(status.message); };
      teams.push_back(value_or_throw(Team::create(*process.engine, std::move(config))));
    }
    std::vector<Team*> by_rank;
    for (const auto& team : teams) by_rank.push_back(team.get());
    connect(by_rank);
    return teams;
  }

  struct Call {
    std::vector<std::vector<float>> buffers;
    std::vector<std::shared_ptr<Operation>> operations;
  };

  /// Computes a sum of 5000 elements in place, for the first ranks only at first.
  Call start(Teams& teams, float value, std::int32_t program = 0, Rank ranks = kSize) {
    Call call;
    call.buffers.assign(kSize, std::vector<float>(5000));
    for (Rank rank = 0; rank < ranks; ++rank) start_on(rank, teams, value, program, call);
    return call;
  }
  static void start_on(Rank rank, Teams& teams, float value, std::int32_t program, Call& call) {
    auto& buffer = call.buffers[static_cast<std::size_t>(rank)];
    for (std::size_t i = 0; i < buffer.size(); ++i)
      buffer[i] = value * static_cast<float>(rank + 1) + static_cast<float>(i % 97);
    auto* const bytes = reinterpret_cast<std::byte*>(buffer.data());
    call.operations.push_back(teams[static_cast<std::size_t>(rank)]->start(
        {.program = program, .in = bytes, .out = bytes, .count = buffer.size(), .type = DataType::kFloat32}));
  }

  void finish(const Call& call, float value) {
    for (int round = 0; round < 20000; ++round) {
      for (auto& process : processes_) process.engine->progress();
    }
    for (Rank rank = 0; rank < kSize; ++rank) {
      ASSERT_TRUE(call.operations[static_cast<std::size_t>(rank)]->done()) << "rank " << rank;
      const auto& buffer = call.buffers[static_cast<std::size_t>(rank)];
      for (std::size_t i = 0; i < buffer.size(); ++i)
        ASSERT_EQ(buffer[i], 6 * value + 3 * static_cast<float>(i % 97)) << "rank " << rank << ", " << i;
    }
  }

  std::mt19937_64 random_{test::seed()};
  std::unique_ptr<inproc::Network> network_;
  Seen seen_;
  std::array<std::array<int, 2>, kSize> polls_{};  ///< by rank and port
  std::vector<Process> processes_;
  std::vector<std::string> errors_;
  bool is_phantom_ = false;
};

// In a torus, data leaves by one port of a server and arrives by the other port of its neighbour. In a rail
// topology, ports of equal number are connected.
TEST_F(Ports, serve_communicators_that_pair_them_differently) {
  Teams torus = make(1, "torus:3"), rails = make(2, "rail:3,2"), again = make(3, "torus:3");
  for (int turn = 1; turn <= 3; ++turn) {
    const auto value = static_cast<float>(turn);
    const Call first = start(torus, value), second = start(rails, 10 * value), third = start(again, value);
    finish(first, value);
    finish(second, 10 * value);
    finish(third, value);
  }
  EXPECT_TRUE(errors_.empty()) << errors_.front();
}

// Trees choose the NICs of a lane pair by pair, so a lane of theirs may take another NIC to a peer than the lane of that number in
// other plans.
TEST_F(Ports, serve_plans_of_one_communicator_that_pair_them_differently) {
  const std::vector<std::string> algorithms{"hips",
                                            "double-tree",
                                            "trees",
                                            "recursive-doubling",
                                            "flat-mesh",
                                            "halving-doubling",
                                            "bine",
                                            "flat-ring",
                                            "recursive-multiplying",
                                            "binomial-tree"};
  Teams teams = make(1, "rail:3,2", algorithms);
  for (int turn = 1; turn <= 10; ++turn) {
    const auto value = static_cast<float>(turn);
    finish(start(teams, value, turn % static_cast<int>(algorithms.size())), value);
    ASSERT_TRUE(errors_.empty()) << algorithms[static_cast<std::size_t>(turn) % algorithms.size()] << ": "
                                 << errors_.front();
  }
}

// A poll is a system call for most transports.
TEST_F(Ports, that_no_outstanding_operation_uses_are_polled_in_each_fourth_round) {
  Teams teams = make(1, "rail:3,2", {"recursive-doubling"});
  constexpr int kRounds = 400;
  Engine& engine = *processes_[0].engine;
  const auto polls_of_rounds = [&] {
    polls_[0] = {};
    for (int round = 0; round < kRounds; ++round) engine.progress();
    return polls_[0];
  };
  using ::testing::UnorderedElementsAre;
  EXPECT_THAT(polls_of_rounds(), UnorderedElementsAre(kRounds, kRounds)) << "nothing is outstanding";
  Call call = start(teams, 1, 0, 1);
  EXPECT_THAT(polls_of_rounds(), UnorderedElementsAre(kRounds, kRounds / 4));
  for (Rank rank = 1; rank < kSize; ++rank) start_on(rank, teams, 1, 0, call);
  finish(call, 1);
  EXPECT_THAT(polls_of_rounds(), UnorderedElementsAre(kRounds, kRounds)) << "the call has ended";
  EXPECT_TRUE(errors_.empty()) << errors_.front();
}

// Staging without memory is registered with each port, and each port's peers write into that of this port.
TEST_F(Ports, serve_simulated_communicators) {
  is_phantom_ = true;
  Teams teams = make(1, "torus:3");
  std::vector<std::shared_ptr<Operation>> operations;
  for (auto& team : teams) operations.push_back(team->start({.count = 5000, .type = DataType::kFloat32}));
  for (int round = 0; round < 20000; ++round) {
    for (auto& process : processes_) process.engine->progress();
  }
  for (const auto& operation : operations) EXPECT_TRUE(operation->done()) << operation->waiting_text();
  EXPECT_TRUE(errors_.empty()) << errors_.front();
}

TEST_F(Ports, share_endpoints_between_communicators_that_pair_them_equally) {
  Teams a = make(1, "torus:3");
  const int opened = seen_.opened;
  EXPECT_EQ(opened, 2 * kSize);
  Teams b = make(2, "torus:3");
  EXPECT_EQ(seen_.opened, opened);
  const Call one = start(a, 1), other = start(b, 2);
  finish(one, 1);
  finish(other, 2);
  EXPECT_TRUE(errors_.empty()) << errors_.front();
  Teams c = make(3, "rail:3,2");
  EXPECT_EQ(seen_.opened, opened + kSize * (kSize - 1) * 2);
}

}  // namespace
}  // namespace hips::exec::testing
