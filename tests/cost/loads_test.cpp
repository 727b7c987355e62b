#include "lib/cost/loads.hpp"

#include <gtest/gtest.h>

#include "lib/plan/builder.hpp"

namespace hips::cost {
namespace {

/// A plan of one block per element and no lanes, to be filled with messages by hand.
struct HandMade {
  explicit HandMade(const std::string& spec, BlockIdx num_blocks = 4) : topology(parse_topology(spec)) {
    shape.algorithm = "by hand";
    shape.num_ranks = topology.num_ranks();
    shape.blocks.num_blocks = num_blocks;
    shape.blocks.parts = {{{0, num_blocks}, {0, 1}, {1, 1}}};
    for (Rank rank = 0; rank < shape.num_ranks; ++rank) programs.emplace_back().rank = rank;
  }

  void message(Rank from, Rank to, BufferRange range, Rail rail = kNoRail, std::int32_t stage = 0) {
    Step send;
    send.op = StepOp::kSend;
    send.stage = stage;
    send.peer = to;
    send.rail = rail;
    send.dst = range;
    programs[from].steps.push_back(send);
    Step take;
    take.op = StepOp::kReduce;
    take.stage = stage;
    take.dst = range;
    take.first_source = static_cast<std::int32_t>(programs[to].sources.size());
    take.num_sources = 2;
    programs[to].sources.push_back({Source::Kind::kLocal, range, -1, kNoRail});
    programs[to].sources.push_back({Source::Kind::kMessage, {}, from, kNoRail});
    programs[to].steps.push_back(take);
  }

  [[nodiscard]] Loads all(Volume volume) const {
    LoadCounter counter(topology, shape, volume);
    for (const Program& program : programs) counter.add(program);
    return counter.take();
  }
  [[nodiscard]] Loads of_server(std::int64_t server, Volume volume) const {
    LoadCounter counter(topology, shape, volume, server);
    const Rank local = topology.ranks_per_server;
    for (Rank i = 0; i < local; ++i) counter.add(programs[static_cast<std::size_t>(server * local + i)]);
    return counter.take();
  }

  Topology topology;
  PlanShape shape;
  std::vector<Program> programs;
};

BufferRange blocks(BlockIdx first, BlockIdx count, Buffer buffer = Buffer::kInput) {
  return {buffer, {first, count}};
}

std::int64_t sum_of_all(const Loads& loads) {
  std::int64_t sum = 0;
  for (const Traffic& traffic : loads.total.nics) sum += traffic.out_bytes + traffic.in_bytes;
  return sum;
}

TEST(Loads, CountAMessageOutOfOneNicAndIntoAnother) {
  HandMade plan("bcube:3,1");
  plan.message(0, 6, blocks(0, 3), 1);
  const Loads loads = plan.all({.count = 400, .element_bytes = 8});
  EXPECT_EQ(loads.total_at(0, 1), (Traffic{2400, 0}));
  EXPECT_EQ(loads.total_at(6, 1), (Traffic{0, 2400}));
  EXPECT_EQ(sum_of_all(loads), 4800);
  EXPECT_EQ(loads.reduced_bytes, 2400);
}

TEST(Loads, CountRelayedBytesAtEveryHop) {
  HandMade plan("bcube:3,1");
  plan.message(0, 8, blocks(0, 1));
  const Loads loads = plan.all({.count = 4, .element_bytes = 1});
  EXPECT_EQ(loads.total_at(0, 0), (Traffic{1, 0}));
  EXPECT_EQ(loads.total_at(2, 0), (Traffic{0, 1}));
  EXPECT_EQ(loads.total_at(2, 1), (Traffic{1, 0}));
  EXPECT_EQ(loads.total_at(8, 1), (Traffic{0, 1}));
  EXPECT_EQ(sum_of_all(loads), 4);
}

TEST(Loads, AreIncompleteForOneServerThatRelays) {
  HandMade plan("bcube:3,1");
  plan.message(0, 8, blocks(0, 1));
  const Loads relay = plan.of_server(2, {.count = 4, .element_bytes = 1});
  EXPECT_EQ(sum_of_all(relay), 0);
  EXPECT_FALSE(relay.complete);
  EXPECT_EQ(plan.of_server(8, {.count = 4, .element_bytes = 1}).total_at(8, 1), (Traffic{0, 1}));
  plan.shape.neighbours_only = true;
  EXPECT_TRUE(plan.of_server(2, {.count = 4, .element_bytes = 1}).complete);
}

TEST(Loads, KeepStagesApart) {
  HandMade plan("switch:3");
  plan.message(0, 1, blocks(0, 1), 0, 0);
  plan.message(0, 1, blocks(1, 2), 0, 2);
  const Loads loads = plan.all({.count = 4, .element_bytes = 1});
  ASSERT_EQ(loads.num_stages(), 3);
  EXPECT_EQ(loads.at(0, 0, 0).out_bytes, 1);
  EXPECT_EQ(loads.at(1, 0, 0).out_bytes, 0);
  EXPECT_EQ(loads.at(2, 0, 0).out_bytes, 2);
  EXPECT_EQ(loads.total_at(1, 0).in_bytes, 3);
}

TEST(Loads, OmitMessagesInsideAServer) {
  HandMade plan("switch:2/2");
  plan.message(0, 1, blocks(0, 4));
  EXPECT_EQ(sum_of_all(plan.all({.count = 4})), 0);
  EXPECT_EQ(sum_of_all(plan.of_server(0, {.count = 4})), 0);
  // From local rank 1 to local rank 0 of the other server: one NIC each.
  plan.message(1, 2, blocks(0, 4));
  EXPECT_EQ(plan.all({.count = 4}).total_at(0, 0), (Traffic{16, 0}));
  EXPECT_EQ(plan.of_server(0, {.count = 4}).total_at(0, 0), (Traffic{16, 0}));
  EXPECT_EQ(plan.of_server(1, {.count = 4}).total_at(1, 0), (Traffic{0, 16}));
}

TEST(Loads, OfAVectorWithFewerElementsThanBlocksHoldNoEmptyMessages) {
  HandMade plan("switch:2");
  for (BlockIdx block = 0; block < 4; ++block) plan.message(0, 1, blocks(block, 1));
  EXPECT_EQ(plan.all({.count = 3}).total_at(0, 0).out_bytes, 12);
  EXPECT_EQ(plan.all({.count = 0}).num_stages(), 0);
}

TEST(Loads, GiveScratchTheSizesOfTheVectorsBlocksRepeatedly) {
  // 10 elements in 4 blocks: sizes 2 3 2 3.
  HandMade plan("switch:2");
  plan.message(0, 1, blocks(5, 1, Buffer::kScratch), 0, 0);
  plan.message(0, 1, blocks(3, 3, Buffer::kScratch), 0, 1);
  plan.message(0, 1, blocks(2, 9, Buffer::kScratch), 0, 2);
  const Loads loads = plan.all({.count = 10, .element_bytes = 1});
  EXPECT_EQ(loads.at(0, 0, 0).out_bytes, 3);
  EXPECT_EQ(loads.at(1, 0, 0).out_bytes, 3 + 2 + 3);
  EXPECT_EQ(loads.at(2, 0, 0).out_bytes, 2 * 10 + 2);
}

TEST(Loads, CountTheCablesAboveEdgeSwitchesAndPods) {
  HandMade plan("fattree:4");
  plan.message(0, 1, blocks(0, 1));   // below one edge switch
  plan.message(0, 2, blocks(0, 1));   // in one pod
  plan.message(0, 15, blocks(0, 1));  // through the core
  const Loads loads = plan.all({.count = 4, .element_bytes = 1});
  EXPECT_EQ(loads.total_at(0, 0).out_bytes, 3);
  ASSERT_EQ(loads.tiers.size(), 2u);
  EXPECT_EQ(loads.total.tiers[0][0], (Traffic{2, 0}));
  EXPECT_EQ(loads.total.tiers[0][1], (Traffic{0, 1}));
  EXPECT_EQ(loads.total.tiers[0][7], (Traffic{0, 1}));
  EXPECT_EQ(loads.total.tiers[1][0], (Traffic{1, 0}));
  EXPECT_EQ(loads.total.tiers[1][3], (Traffic{0, 1}));
}

TEST(Loads, RejectAPlanOfAnotherSizeAndInvalidRanks) {
  HandMade plan("switch:3");
  plan.message(0, 1, blocks(0, 1));
  const Topology other = parse_topology("switch:4");
  EXPECT_THROW(LoadCounter(other, plan.shape, {.count = 1}), Error);
  plan.programs[0].steps[0].peer = 3;
  EXPECT_THROW((void)plan.all({.count = 4}), Error);
  plan.programs[0].steps[0].peer = 1;
  plan.programs[0].steps[0].rail = 1;
  EXPECT_THROW((void)plan.all({.count = 4}), Error);
  plan.programs[0].steps[0].rail = 0;
  plan.programs[0].steps[0].stage = 1 << 30;
  EXPECT_THROW((void)plan.all({.count = 4}), Error);
  plan.programs[0].steps[0].stage = 0;
  plan.programs[1].sources[1].rail = 7;
  EXPECT_THROW((void)plan.of_server(1, {.count = 4}), Error);
  LoadCounter of_one(plan.topology, plan.shape, {.count = 4}, 1);
  EXPECT_THROW(of_one.add(plan.programs[0]), Error);
}

TEST(Loads, OfOneServerAreItsRowsInTheLoadsOfAll) {
  for (const char* spec : {"bcube:3,1", "bcube:2x4x3", "torus:4x3", "torus:2x2", "fattree:4", "rail:5,3",
                           "bcube:3,1/2", "torus:3x2/3", "switch:4/2"}) {
    const Topology topology = parse_topology(spec);
    const auto builder = plan::make_builder(topology, {});
    ASSERT_TRUE(builder) << builder.error().message;
    const Volume volume{.count = 1013, .element_bytes = 4};
    LoadCounter all(topology, (*builder)->shape(), volume);
    for (Rank rank = 0; rank < topology.num_ranks(); ++rank) all.add((*builder)->program(rank));
    const Loads loads = all.take();
    for (std::int64_t server = 0; server < topology.num_servers(); ++server) {
      LoadCounter one(topology, (*builder)->shape(), volume, server);
      const Rank local = topology.ranks_per_server;
      for (Rank i = 0; i < local; ++i) one.add((*builder)->program(static_cast<Rank>(server * local + i)));
      const Loads own = one.take();
      ASSERT_TRUE(own.complete) << spec;
      for (Rail rail = 0; rail < topology.num_rails; ++rail) {
        ASSERT_EQ(own.total_at(server, rail), loads.total_at(server, rail)) << spec;
        for (std::int32_t stage = 0; stage < own.num_stages(); ++stage) {
          ASSERT_EQ(own.at(stage, server, rail), loads.at(stage, server, rail)) << spec;
        }
      }
    }
  }
}

}  // namespace
}  // namespace hips::cost
