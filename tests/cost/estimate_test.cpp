#include "lib/cost/estimate.hpp"

#include <gtest/gtest.h>

#include <bit>

#include <algorithm>

#include "lib/plan/builder.hpp"
#include "tests/choices.hpp"
#include "tests/cost/shapes.hpp"

namespace hips::cost {
namespace {

using Patterns = std::vector<LevelPattern>;

const Patterns kMesh = {{Pattern::kMesh, Pattern::kMesh, 0}};
const Patterns kRing = {{Pattern::kRing, Pattern::kRing, 0}};

std::unique_ptr<PlanBuilder> build(const Topology& topology, PlanRequest request) {
  auto builder = plan::make_builder(topology, request);
  EXPECT_TRUE(builder) << topology.spec << ": " << builder.error().message;
  return *std::move(builder);
}

/// Cost of a plan in units of W / B, the vector's bytes over a NIC's rate.
struct Relative {
  double bandwidth, barrier, ratio;
  std::int32_t steps;
};

/// `count` is chosen so that every block and every share is a whole number of elements.
Relative relative(const std::string& spec, PlanRequest request, std::int64_t count) {
  const Topology topology = parse_topology(spec);
  const auto builder = build(topology, std::move(request));
  const Cost cost = estimate_all(topology, *builder, {.count = count, .element_bytes = 4});
  const double unit = static_cast<double>(4 * count) / kDefaultBandwidthBytesPerS;
  return {cost.bandwidth_seconds / unit, cost.barrier_seconds / unit, cost.ratio, cost.num_steps};
}

TEST(Estimate, PutsHipsOnEqualRadicesAtTheBoundWithEveryStageEqualOnEveryNicDirection) {
  for (const auto& radices : tests::radix_mixes(64)) {
    if (!tests::all_equal(radices)) continue;
    for (const char* family : {"bcube", "torus"}) {
      for (const Patterns& patterns : {kMesh, kRing}) {
        const bool torus = std::string(family) == "torus";
        // A mesh on a ring of cables sends through servers in between, so it does not reach the bound.
        if (torus && patterns == kMesh) continue;
        const Topology topology = parse_topology(tests::spec_of(family, radices));
        const auto builder = build(topology, {.patterns = patterns});
        const std::int64_t count = 2 * topology.num_rails * topology.num_servers();
        const Cost cost = estimate_all(topology, *builder, {.count = count, .element_bytes = 4});
        EXPECT_NEAR(cost.ratio, 1, 1e-12) << topology.spec;
        EXPECT_NEAR(cost.barrier_ratio, 1, 1e-12) << topology.spec;
        for (const Loads::Stage& stage : cost.loads.stages) {
          for (const Traffic& nic : stage.nics) {
            ASSERT_EQ(nic.out_bytes, stage.nics[0].out_bytes) << topology.spec;
            ASSERT_EQ(nic.in_bytes, stage.nics[0].out_bytes) << topology.spec;
          }
        }
      }
    }
  }
}

TEST(Estimate, PutsHipsOnMixedRadicesAtTheBoundToWithinABlockPerLane) {
  for (const auto& radices : tests::radix_mixes(test::runs_a_sample() ? 27 : 64)) {
    if (tests::all_equal(radices)) continue;
    for (const char* family : {"bcube", "torus"}) {
      const Topology topology = parse_topology(tests::spec_of(family, radices));
      const auto builder = build(topology, {});
      // No count makes all the shares whole for every mix: with this one a block is about 1000 elements.
      const Volume volume{.count = 1000LL * topology.num_rails * topology.num_servers() + 1,
                          .element_bytes = 4};
      const Cost cost = estimate_all(topology, *builder, volume);
      const PlanShape& shape = builder->shape();
      std::int64_t block_per_lane = 0;
      for (const LaneInfo& lane : shape.lanes) {
        block_per_lane += shape.blocks.elements({lane.blocks.first, 1}, volume.count) * volume.element_bytes;
      }
      const double ideal = cost.bound_seconds * kDefaultBandwidthBytesPerS;
      for (const Traffic& nic : cost.loads.total.nics) {
        ASSERT_NEAR(static_cast<double>(nic.out_bytes), ideal, static_cast<double>(block_per_lane))
            << topology.spec;
        ASSERT_NEAR(static_cast<double>(nic.in_bytes), ideal, static_cast<double>(block_per_lane))
            << topology.spec;
      }
      EXPECT_LT(cost.ratio, 1.01) << topology.spec;
    }
  }
}

/// Numbers of elements with rounding effects; all of them for small plans.
std::vector<std::int64_t> awkward_counts(std::int64_t n) {
  if (n > 16) return {1, n + 1, 1 << 20};
  return {0, 1, n - 1, n, n + 1, 997, 1 << 20};
}

bool has_equal_levels(const Topology& topology) {
  return std::adjacent_find(topology.levels.begin(), topology.levels.end(),
                            [](const Level& a, const Level& b) { return a.radix != b.radix; }) ==
         topology.levels.end();
}

bool ascending(const Topology& topology) {
  return std::is_sorted(topology.levels.begin(), topology.levels.end(),
                        [](const Level& a, const Level& b) { return a.radix < b.radix; }) ||
         topology.levels[0].kind == LevelKind::kNode;
}

TEST(Estimate, IsNeverBelowTheBound) {
  std::vector<std::string> specs;
  for (const auto& radices : tests::radix_mixes(64)) {
    // The order of the levels changes the plan, not the bound: sorted mixes and their reverses are enough.
    if (!std::is_sorted(radices.begin(), radices.end()) && !std::is_sorted(radices.rbegin(), radices.rend()))
      continue;
    specs.push_back(tests::spec_of("bcube", radices));
    specs.push_back(tests::spec_of("torus", radices));
  }
  for (const char* spec : {"fattree:2", "fattree:4", "fattree:6", "fattree:4/2", "bcube:3,1/2", "torus:3x3/3",
                           "switch:5/4", "switch:1/4", "switch:1", "rail:1,2"}) {
    specs.push_back(spec);
  }
  for (int servers = 2; servers <= 64; servers += 3) {
    specs.push_back("switch:" + std::to_string(servers));
    specs.push_back("rail:" + std::to_string(servers) + ",2");
    specs.push_back("rail:" + std::to_string(servers) + ",3");
  }
  const Patterns kPsOne = {{Pattern::kPs, Pattern::kPs, 1}};
  const Patterns kHybrid = {{Pattern::kMesh, Pattern::kRing, 0}};
  if (test::runs_a_sample()) {
    std::mt19937_64 random(test::seed());
    std::shuffle(specs.begin(), specs.end(), random);
    specs.resize(specs.size() / 8);
  }
  std::size_t costed = 0;
  for (const std::string& spec : specs) {
    const Topology topology = parse_topology(spec);
    for (const plan::Algorithm& algorithm : plan::algorithms()) {
      for (const Patterns& patterns : {kMesh, kRing, kPsOne, kHybrid}) {
        // Only hips has patterns: the other algorithms run once, in one order of levels.
        const bool hips = algorithm.name == "hips";
        if (!hips && (patterns != kMesh || !ascending(topology))) continue;
        // Packing trees takes long, so only a few topologies are tried.
        if (algorithm.name == "trees" && topology.num_ranks() > 12) continue;
        PlanRequest request{.algorithm = std::string(algorithm.name)};
        if (hips) request.patterns = patterns;
        // The search for several rings over mixed radices would take longer than all other cases.
        if (algorithm.name == "flat-ring" && !has_equal_levels(topology)) request.num_rings = 1;
        const auto builder = plan::make_builder(topology, request);
        if (!builder) {
          ASSERT_EQ(builder.error().code, Code::kUnsupported) << spec << " " << builder.error().message;
          continue;
        }
        const Plan plan = plan::build_all(**builder);
        for (const std::int64_t count : awkward_counts(topology.num_ranks())) {
          const Cost cost =
              estimate(topology, plan.shape, plan.programs, {.count = count, .element_bytes = 4});
          ASSERT_GE(cost.ratio, 1 - 1e-12)
              << algorithm.name << " on " << spec << ", " << count << " elements";
          ASSERT_GE(cost.barrier_seconds, cost.bandwidth_seconds * (1 - 1e-12))
              << algorithm.name << " on " << spec;
          ++costed;
        }
      }
    }
  }
  EXPECT_GT(costed, test::runs_a_sample() ? 300u : 5000u);
}

// The table of `hips compare --theory` on BCube(3,1), N = 9, K = 2; terms in W/B, stages not overlapping.
TEST(Estimate, GivesHipsTheTermsOfTheTable) {
  const std::int64_t count = 9 * 2 * 100;
  Relative hips = relative("bcube:3,1", {.patterns = kMesh}, count);
  EXPECT_EQ(hips.steps, 4);
  EXPECT_NEAR(hips.barrier, 2.0 * 8 / (9 * 2), 1e-12);
  EXPECT_NEAR(hips.bandwidth, hips.barrier, 1e-12);
  hips = relative("bcube:3,1", {.patterns = kRing}, count);
  EXPECT_EQ(hips.steps, 2 * 2 * (3 - 1));
  EXPECT_NEAR(hips.barrier, 2.0 * 8 / (9 * 2), 1e-12);
  // One PS leader per group: 2(n-1)W/B with barriers, at most half of it when segments overlap the stages.
  hips = relative("bcube:3,1", {.patterns = {{Pattern::kPs, Pattern::kPs, 1}}}, count);
  EXPECT_EQ(hips.steps, 4);
  EXPECT_NEAR(hips.barrier, 2.0 * (3 - 1), 1e-12);
  EXPECT_LE(hips.bandwidth, 3 - 1 + 1e-12);
  EXPECT_GT(hips.ratio, 1);
}

TEST(Estimate, GivesFlatPsTheTermsOfTheTable) {
  Relative ps = relative("switch:9", {.algorithm = "flat-ps"}, 900);
  EXPECT_EQ(ps.steps, 2);
  EXPECT_NEAR(ps.barrier, 2.0 * 8, 1e-12);
  // Push and pull use different directions of the leader's NIC: half the time when they overlap.
  EXPECT_NEAR(ps.bandwidth, 8, 1e-12);
  // Nine leaders of nine are a mesh.
  ps = relative("switch:9", {.algorithm = "flat-ps", .num_leaders = 9}, 900);
  EXPECT_NEAR(ps.barrier, 2.0 * 8 / 9, 1e-12);
}

TEST(Estimate, GivesFlatMeshTheTermsOfTheTableAndRelayedBytes) {
  const Relative mesh = relative("switch:9", {.algorithm = "flat-mesh"}, 900);
  EXPECT_EQ(mesh.steps, 2);
  EXPECT_NEAR(mesh.barrier, 2.0 * 8 / 9, 1e-12);
  EXPECT_NEAR(mesh.ratio, 1, 1e-12);
  // On BCube(3,1) six of a server's nine pieces change the digit of a level, and so pass one NIC of it.
  const Relative relayed = relative("bcube:3,1", {.algorithm = "flat-mesh"}, 900);
  EXPECT_NEAR(relayed.bandwidth, 2.0 * 6 / 9, 1e-12);
  EXPECT_NEAR(relayed.ratio, 1.5, 1e-12);
}

TEST(Estimate, GivesFlatRingTheTermsOfTheTableOverOneNicAndOverAll) {
  for (const char* spec : {"switch:9", "bcube:3,1", "torus:3x3", "rail:9,2"}) {
    const Relative ring = relative(spec, {.algorithm = "flat-ring", .num_rings = 1}, 9 * 100);
    EXPECT_EQ(ring.steps, 2 * 8) << spec;
    EXPECT_NEAR(ring.barrier, 2.0 * 8 / 9, 1e-12) << spec;
  }
  for (const auto& [spec, nics] : {std::pair("bcube:3,1", 2), {"rail:9,2", 2}, {"torus:3x3", 4}}) {
    const Relative rings = relative(spec, {.algorithm = "flat-ring"}, 9 * 4 * 100);
    EXPECT_EQ(rings.steps, 2 * 8) << spec;
    EXPECT_NEAR(rings.barrier, 2.0 * 8 / (9 * nics), 1e-12) << spec;
    EXPECT_NEAR(rings.ratio, 1, 1e-12) << spec;
  }
}

TEST(Estimate, GivesDoublingAlgorithmsTheirLogarithms) {
  const Relative doubling = relative("switch:8", {.algorithm = "recursive-doubling"}, 800);
  EXPECT_EQ(doubling.steps, 3);
  EXPECT_NEAR(doubling.bandwidth, 3, 1e-12);
  const Relative halving = relative("switch:8", {.algorithm = "halving-doubling"}, 800);
  EXPECT_EQ(halving.steps, 6);
  EXPECT_NEAR(halving.bandwidth, 2.0 * 7 / 8, 1e-12);
}

TEST(Estimate, ShowsWhatFlatAlgorithmsSendThroughTheTiersOfAFatTree) {
  const Topology topology = parse_topology("fattree:4");
  const Volume volume{.count = 1600, .element_bytes = 4};
  const auto bytes = static_cast<double>(volume.bytes());
  // Flat mesh: k/2 times the lower bound out of an edge switch, k^2/4 times out of a pod.
  const Cost mesh = estimate_all(topology, *build(topology, {.algorithm = "flat-mesh"}), volume);
  for (const Traffic& edge : mesh.loads.total.tiers[0]) {
    EXPECT_DOUBLE_EQ(static_cast<double>(edge.out_bytes), 2 * bytes * 2 * (1 - 2.0 / 16));
  }
  for (const Traffic& pod : mesh.loads.total.tiers[1]) {
    EXPECT_DOUBLE_EQ(static_cast<double>(pod.out_bytes), 2 * bytes * 4 * (1 - 1.0 / 4));
  }
  // Flat ring in rank order: W(N-1)/N per phase over every switch.
  const Cost ring = estimate_all(topology, *build(topology, {.algorithm = "flat-ring"}), volume);
  for (const auto& tier : ring.loads.total.tiers) {
    for (const Traffic& each : tier) {
      EXPECT_DOUBLE_EQ(static_cast<double>(each.out_bytes), 2 * bytes * 15 / 16);
      EXPECT_EQ(each.in_bytes, each.out_bytes);
    }
  }
}

TEST(Estimate, GivesATorusBothDirections) {
  const std::int64_t count = 16 * 4 * 100;
  const Relative ring = relative("torus:4x4", {}, count);
  EXPECT_EQ(ring.steps, 2 * 2 * (4 - 1));
  EXPECT_NEAR(ring.barrier, 2.0 * 15 / (16 * 4), 1e-12);
  // An odd side: a mesh costs (n+1)/4 times the ring, whose bytes take more than one hop each.
  const Relative odd_ring = relative("torus:5", {}, 1000);
  const Relative odd_mesh = relative("torus:5", {.patterns = kMesh}, 1000);
  EXPECT_NEAR(odd_mesh.bandwidth / odd_ring.bandwidth, (5 + 1) / 4.0, 1e-12);
  // An even side: n^2/(4(n-1)) times; to the opposite server half the bytes take either direction.
  for (const int n : {4, 8}) {
    const Relative mesh = relative("torus:" + std::to_string(n), {.patterns = kMesh}, n * 200);
    EXPECT_NEAR(mesh.ratio, n * n / (4.0 * (n - 1)), 1e-12);
  }
}

TEST(Estimate, LeavesEdgeSwitchesAndPodsOfAFatTreeAtTheirBounds) {
  const Topology topology = parse_topology("fattree:4");
  const Volume volume{.count = 1600, .element_bytes = 4};
  const Cost cost = estimate_all(topology, *build(topology, {}), volume);
  EXPECT_NEAR(cost.ratio, 1, 1e-12);
  ASSERT_EQ(cost.loads.tiers.size(), 2u);
  const auto bytes = static_cast<double>(volume.bytes());
  for (const Traffic& edge : cost.loads.total.tiers[0]) {
    EXPECT_DOUBLE_EQ(static_cast<double>(edge.out_bytes), 2 * bytes * (1 - 2.0 / 16));
    EXPECT_EQ(edge.in_bytes, edge.out_bytes);
  }
  for (const Traffic& pod : cost.loads.total.tiers[1]) {
    EXPECT_DOUBLE_EQ(static_cast<double>(pod.out_bytes), 2 * bytes * (1 - 1.0 / 4));
    EXPECT_EQ(pod.in_bytes, pod.out_bytes);
  }
}

TEST(Estimate, CountsEachServerOnceForAnyNumberOfRanks) {
  for (const std::string spec : {"bcube:3,1", "torus:3x3", "switch:6", "fattree:4", "leafspine:3,4"}) {
    const std::int64_t count = 5760;
    const Relative one = relative(spec, {}, count);
    const Relative four = relative(spec + "/4", {}, count);
    EXPECT_NEAR(four.ratio, 1, 1e-12) << spec;
    EXPECT_NEAR(four.bandwidth, one.bandwidth, 1e-12) << spec;
  }
}

TEST(Estimate, OfOneServerEqualsThatOfAllOnSymmetricPlans) {
  for (const char* spec : {"bcube:4,1", "torus:4x4", "rail:8,2", "bcube:3,1/2"}) {
    const Topology topology = parse_topology(spec);
    const auto builder = build(topology, {});
    const Volume volume{.count = 2880, .element_bytes = 8};
    const Cost all = estimate_all(topology, *builder, volume);
    for (Rank rank = 0; rank < topology.num_ranks(); ++rank) {
      const Cost one = estimate_server_of(topology, *builder, rank, volume);
      EXPECT_TRUE(one.loads.complete);
      EXPECT_DOUBLE_EQ(one.bandwidth_seconds, all.bandwidth_seconds) << spec;
      EXPECT_DOUBLE_EQ(one.barrier_seconds, all.barrier_seconds) << spec;
      EXPECT_DOUBLE_EQ(one.ratio, all.ratio) << spec;
    }
  }
}

TEST(Estimate, CoversAMillionServersByOneOfThem) {
  const Topology topology = parse_topology("bcube:10,5");
  const auto builder = build(topology, {});
  const Cost cost =
      estimate_server_of(topology, *builder, 123456, {.count = 575'000'000 / 4, .element_bytes = 4});
  EXPECT_EQ(cost.num_steps, 12);
  EXPECT_NEAR(cost.latency_seconds, 12e-6, 1e-12);
  // A block is about 24 elements, so rounding matters; it is at most one element of ten in a message.
  EXPECT_NEAR(cost.ratio, 1, 0.01);
  EXPECT_EQ(cost.busiest.name.rfind("server <123456> NIC ", 0), 0u) << cost.busiest.name;
}

TEST(Estimate, NamesTheBusiestLink) {
  const Topology topology = parse_topology("bcube:3,1/2");
  const auto builder = build(topology, {});
  const Cost cost = estimate_all(topology, *builder, {.count = 1800, .element_bytes = 4});
  EXPECT_EQ(cost.busiest.name, "server <00> NIC 0 out");
  EXPECT_GT(cost.busiest.bytes, 0);
  EXPECT_DOUBLE_EQ(cost.busiest.seconds, cost.bandwidth_seconds);
}

TEST(Estimate, OfAnEmptyVectorIsAtTheBound) {
  const Topology topology = parse_topology("bcube:3,1");
  const Cost cost = estimate_all(topology, *build(topology, {}), {.count = 0});
  EXPECT_EQ(cost.bandwidth_seconds, 0);
  EXPECT_EQ(cost.ratio, 1);
  EXPECT_EQ(cost.busiest.name, "");
  const Topology alone = parse_topology("switch:1");
  EXPECT_EQ(estimate_all(alone, *build(alone, {}), {.count = 100}).ratio, 1);
}

TEST(Estimate, RejectsProgramsOfNeitherAllRanksNorOneServer) {
  const Topology topology = parse_topology("bcube:3,1");
  const Plan plan = plan::build_all(*build(topology, {}));
  EXPECT_THROW((void)estimate(topology, plan.shape, std::span(plan.programs).first(2), {.count = 9}), Error);
  EXPECT_NO_THROW((void)estimate(topology, plan.shape, std::span(plan.programs).subspan(4, 1), {.count = 9}));
}

TEST(Estimate, GivesTreesBucketSwingAndBineTheirClosedForms) {
  const auto of = [](const std::string& spec, const std::string& algorithm) {
    const Topology topology = parse_topology(spec);
    const auto builder = value_or_throw(plan::make_builder(topology, {.algorithm = algorithm}));
    return estimate_all(topology, *builder, {.count = 1 << 24});
  };
  // Equal sides: every port carries 2(N-1)/(2dN), the bound; swing too, as long as partners are neighbours.
  for (const std::string spec : {"torus:4", "torus:4x4", "torus:4x4x4", "torus:2x2"}) {
    EXPECT_NEAR(of(spec, "bucket").ratio, 1, 1e-4) << spec;
    EXPECT_NEAR(of(spec, "swing").ratio, 1, 1e-4) << spec;
  }
  EXPECT_NEAR(of("torus:5x5", "bucket").ratio, 1, 1e-4);
  EXPECT_EQ(of("torus:5x5", "bucket").num_steps, 2 * (4 + 4));
  EXPECT_EQ(of("torus:8x8", "swing").num_steps, 2 * 6);
  // Equal lanes load the longer of unequal sides more: (3/4 + 3/4 * 1/3) / 2 instead of (1 - 1/12) / 2.
  EXPECT_NEAR(of("torus:4x3", "bucket").ratio, 1.091, 1e-3);
  EXPECT_NEAR(of("torus:4x3", "hips").ratio, 1, 1e-3);
  for (const std::int64_t ranks : {2, 4, 16, 64}) {
    const std::string spec = "switch:" + std::to_string(ranks);
    EXPECT_NEAR(of(spec, "bine").ratio, 1, 1e-4) << spec;
    EXPECT_EQ(of(spec, "bine").num_steps, of(spec, "halving-doubling").num_steps);
  }
  // Distances are a third: with 64 ranks below 8 leaves, fewer bytes pass the spines than with powers of two.
  const auto over_leaves = [&](const std::string& algorithm) {
    const Cost cost = of("leafspine:8,6", algorithm);
    std::int64_t sum = 0;
    for (const Traffic& leaf : cost.loads.total.tiers[0]) sum += leaf.out_bytes;
    return sum;
  };
  EXPECT_LT(over_leaves("bine"), over_leaves("halving-doubling"));
  for (const std::int64_t ranks : {3, 7, 8, 33, 64}) {
    const Cost cost = of("switch:" + std::to_string(ranks), "double-tree");
    EXPECT_LE(cost.bandwidth_seconds, 2.0 * (1 << 26) / kDefaultBandwidthBytesPerS * 1.0001);
    EXPECT_LE(cost.num_steps, 2 * (std::bit_width(static_cast<std::uint64_t>(ranks - 1))));
  }
}

}  // namespace
}  // namespace hips::cost
