#include <algorithm>

#include "tests/transports/world.hpp"
#include "transports/inproc/network.hpp"
#include "transports/inproc/schedule.hpp"

namespace hips::test {
namespace inproc_test {
namespace {

using inproc::Faults;
using inproc::Network;
using transport::Event;
using transport::Verb;
using transport::WorkRequest;

constexpr Faults kAllFaults = {
    .delay = 0.5, .reorder = 0.5, .late_completion = 0.5, .queue_full = 0.3, .max_delay_steps = 10};

/// Two ranks, connected, and the network between them.
struct Pair {
  explicit Pair(const Faults& faults, std::uint64_t from_seed = seed(), Clock* clock = nullptr)
      : random(from_seed),
        network(Network::create({.random = &random, .clock = clock, .faults = faults}).value()),
        world({.name = "Inproc",
               .start = [this] { return [this](Rank rank) { return network->make_transport(rank); }; }},
              3) {
    world.join_all();
  }
  std::mt19937_64 random;
  std::unique_ptr<Network> network;
  World world;
};

/// Runs requests of all kinds and returns the hash of all events.
std::uint64_t run(std::uint64_t from_seed) {
  Pair pair(kAllFaults, from_seed);
  std::mt19937_64 driver(7);  // the user's own choices are the same in all runs
  std::vector<std::byte> data(100);
  for (std::uint32_t i = 0; i < 300; ++i) {
    const auto from = static_cast<Rank>(driver() % 3);
    const auto to = static_cast<Rank>((from + 1 + static_cast<Rank>(driver() % 2)) % 3);
    WorkRequest request =
        put(driver() % 2 == 0 ? Verb::kPut : Verb::kPutNotify, to, data, pair.world.remote(to), 0, i);
    request.context = reinterpret_cast<std::uintptr_t>(&pair);  // differs from run to run
    (void)pair.world.transport(from).post({&request, 1});
    pair.world.poll_all();
    if (i == 200) pair.network->kill(2);
  }
  pair.world.settle();
  return pair.network->trace_hash();
}

TEST(Inproc, TheSeedDeterminesTheRun) {
  const std::uint64_t first = run(seed());
  EXPECT_EQ(run(seed()), first);
  EXPECT_NE(run(seed() + 1), first);
}

TEST(Inproc, AKnownSeedGivesAKnownRunOnEveryMachine) {
  EXPECT_EQ(run(42), 2663506088846505100u);
}

TEST(Inproc, WithoutFaultsRequestsCompleteBeforePostReturns) {
  Pair pair({});
  const WorkRequest request = notification(1, 5, true);
  ASSERT_EQ(pair.world.transport(0).post({&request, 1}), 1u);
  EXPECT_EQ(pair.network->num_outstanding(), 0u);
  EXPECT_EQ(pair.world.poll(1), 1u);
  EXPECT_EQ(pair.world.poll(0), 1u);
}

TEST(Inproc, ReorderedNotificationsOvertakeAndOrderedOnesDoNot) {
  for (const double reorder : {0.0, 0.5}) {
    Pair pair({.delay = 0.5, .reorder = reorder});
    bool overtaken = false;
    std::uint32_t last = 0;
    for (std::uint32_t i = 1; i <= 200; ++i) pair.world.post(0, notification(1, i));
    ASSERT_TRUE(pair.world.poll_until([&] { return pair.world[1].events.size() == 200; }));
    for (const Event& event : pair.world[1].events) {
      overtaken |= event.token < last;
      last = event.token;
    }
    EXPECT_EQ(overtaken, reorder > 0);
  }
}

TEST(Inproc, ASourceOverwrittenBeforeItsCompletionArrivesChanged) {
  // This is how the fault catches a user that does not wait for local completion.
  Pair pair({.late_completion = 1});
  int changed = 0;
  for (int round = 0; round < 50; ++round) {
    std::vector<std::byte> source(10, std::byte{1});
    pair.world.post(0, put(Verb::kPutNotify, 1, source, pair.world.remote(1), 0));
    std::ranges::fill(source, std::byte{2});
    (void)pair.world.wait(1, Event::Kind::kArrival);
    changed += pair.world.memory(1)[0] == std::byte{2};
    (void)pair.world.wait(0, Event::Kind::kCompletion);
  }
  EXPECT_GT(changed, 25);
}

TEST(Inproc, ADelayInTimeEndsWhenTheClockReachesIt) {
  ManualClock clock;
  Pair pair({.delay = 1, .max_delay_steps = 0, .max_delay_ns = 1'000'000}, 3, &clock);
  for (std::uint32_t i = 0; i < 20; ++i) pair.world.post(0, notification(1, i));
  for (int i = 0; i < 1000; ++i) pair.world.poll_all();
  const std::size_t early = pair.world[1].events.size();
  EXPECT_LT(early, 20u);
  EXPECT_GT(pair.network->num_outstanding(), 0u);
  clock.advance_ns(1'000'000);
  pair.world.settle();
  EXPECT_EQ(pair.world[1].events.size(), 20u);
  EXPECT_EQ(pair.network->num_outstanding(), 0u);
}

TEST(Inproc, OnlyStepAdvancesTimeIfPollsAreNoSteps) {
  std::mt19937_64 random(seed());
  auto network = Network::create(
                     {.random = &random, .faults = {.delay = 1, .max_delay_steps = 1}, .step_on_poll = false})
                     .value();
  World world(
      {.name = "Inproc", .start = [&] { return [&](Rank rank) { return network->make_transport(rank); }; }},
      2);
  world.join_all();
  world.post(0, notification(1, 1));
  world.settle();
  EXPECT_TRUE(world[1].events.empty());
  network->step();
  EXPECT_EQ(world.poll(1), 1u);
}

TEST(Inproc, AKilledRankLosesItsOutstandingRequestsAndItsPeersGetPeerDead) {
  Pair pair({.delay = 1, .max_delay_steps = 50});
  std::vector<std::byte> data(100, std::byte{9});
  for (std::uint32_t i = 0; i < 10; ++i)
    pair.world.post(0, put(Verb::kPutNotify, 1, data, pair.world.remote(1), 0, i));
  pair.network->kill(0);
  const std::size_t arrived = pair.world[1].events.size();
  pair.world.settle();
  EXPECT_EQ(pair.world[1].events.size(), arrived + 1) << "something of a dead rank arrived";
  for (const Rank peer : {1, 2}) {
    const Event event = pair.world.wait(peer, Event::Kind::kPeerDead);
    EXPECT_EQ(event.peer, 0);
    EXPECT_EQ(event.error.code, Code::kPeerLost);
  }
  // The network no longer accesses its memory, which could be unmapped.
  pair.world.post(1, put(Verb::kPutNotify, 0, data, pair.world.remote(0), 0));
  pair.world.settle();
  EXPECT_EQ(std::ranges::count(pair.world.memory(0), std::byte{9}), 0);
  EXPECT_TRUE(pair.world[0].events.empty());
}

TEST(Inproc, APortThatGoesDownIsReportedToItsRankAndItsPeers) {
  Pair pair({});
  pair.network->take_down(1, 0);
  const Event down = pair.world.wait(1, Event::Kind::kPortDown);
  EXPECT_EQ(down.error.scope, Scope::kLink);
  EXPECT_EQ(pair.world.wait(0, Event::Kind::kPeerDead).peer, 1);
  EXPECT_EQ(pair.world.wait(2, Event::Kind::kPeerDead).peer, 1);
  pair.world.post(1, notification(0, 1));
  pair.world.post(0, notification(1, 1));
  pair.world.settle();
  for (Rank rank = 0; rank < 3; ++rank) EXPECT_TRUE(pair.world[rank].events.empty());
  pair.world.post(0, notification(2, 3));
  EXPECT_EQ(pair.world.wait(2, Event::Kind::kArrival).token, 3u);
}

TEST(Inproc, APutToDeregisteredMemoryTouchesNothingAndBreaksTheEndpoint) {
  Pair pair({});
  std::vector<std::byte> memory(100);
  auto region = pair.world.transport(1).register_memory({.address = memory.data(), .bytes = 100}).value();
  pair.world.transport(1).deregister(region.local);
  std::vector<std::byte> data(100, std::byte{9});
  pair.world.post(0, put(Verb::kPutNotify, 1, data, region.remote, 0));
  EXPECT_THAT(pair.world.wait(0, Event::Kind::kPeerDead).error.message,
              ::testing::HasSubstr("not registered"));
  EXPECT_EQ(memory[0], std::byte{0});
}

TEST(Inproc, ErrorsNameTheInvalidOption) {
  std::mt19937_64 random;
  const auto message = [](const Network::Options& options) {
    auto network = Network::create(options);
    return network.has_value() ? std::string() : network.error().message;
  };
  EXPECT_THAT(message({.random = &random, .faults = {.delay = 1.5}}),
              ::testing::HasSubstr("\"delay\" has chance 1.5"));
  EXPECT_THAT(message({.random = &random, .faults = {.reorder = -1}}), ::testing::HasSubstr("\"reorder\""));
  EXPECT_THAT(message({.faults = {.queue_full = 0.1}}), ::testing::HasSubstr("no random sequence"));
  EXPECT_THAT(message({.faults = {.max_delay_ns = 5}}), ::testing::HasSubstr("no clock"));
  EXPECT_THAT(message({.max_posted = 0}), ::testing::HasSubstr("max_posted"));
  auto network = Network::create({}).value();
  EXPECT_FALSE(network->set_faults({.delay = 0.5}).ok());
}

TEST(Schedule, LaterActionsThatAreDueNoEarlierComeOutLater) {
  inproc::Schedule<int> schedule;
  schedule.add({.step = 5, .ns = 100}, 1);
  schedule.add({.step = 5, .ns = 100}, 2);
  schedule.add({.step = 1, .ns = 200}, 3);
  schedule.add({.step = 7, .ns = 0}, 4);
  EXPECT_FALSE(schedule.take({.step = 4, .ns = 150}).has_value());
  EXPECT_EQ(schedule.take({.step = 6, .ns = 150}), 1);
  EXPECT_EQ(schedule.take({.step = 6, .ns = 150}), 2);
  EXPECT_FALSE(schedule.take({.step = 6, .ns = 150}).has_value());
  EXPECT_EQ(schedule.take({.step = 7, .ns = 200}), 4);
  EXPECT_EQ(schedule.take({.step = 7, .ns = 200}), 3);
  EXPECT_EQ(schedule.size(), 0u);
}

}  // namespace
}  // namespace inproc_test
}  // namespace hips::test
