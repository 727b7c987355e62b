#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/plan/fabric/server_rings.hpp"
#include "tests/plan/radix_mixes.hpp"
#include "tests/plan/support.hpp"

namespace hips::tests {
namespace {

const char* const kFlat[] = {
    "flat-ps",       "flat-mesh",       "flat-ring", "recursive-doubling", "recursive-multiplying",
    "binomial-tree", "halving-doubling"};

TEST(FlatAlgorithms, SumEveryContributionOnceForAnyNumberOfRanks) {
  for (const char* algorithm : kFlat) {
    for (int n = 1; n <= 24; ++n) expect_correct(fmt::format("switch:{}", n), {.algorithm = algorithm});
    for (const int n : {31, 32, 33, 48, 63, 64}) {
      expect_correct(fmt::format("switch:{}", n), {.algorithm = algorithm});
    }
  }
}

TEST(FlatAlgorithms, AreCorrectOnEveryFamily) {
  for (const char* algorithm : kFlat) {
    for (const char* spec :
         {"bcube:3,1", "bcube:2,2", "bcube:2x4x3", "bcube:3x2/2", "torus:4x4", "torus:3x2", "torus:2x2",
          "torus:5/3", "rail:9,2", "rail:5,4/2", "fattree:4", "switch:1/4", "rail:1,4"}) {
      expect_correct(spec, {.algorithm = algorithm});
    }
  }
}

TEST(FlatPs, AcceptsAnyNumberOfLeaders) {
  for (std::int32_t leaders = 1; leaders <= 9; ++leaders) {
    expect_correct("rail:9,2", {.algorithm = "flat-ps", .num_leaders = leaders});
  }
  const auto refused =
      plan::make_builder(parse_topology("switch:4"), {.algorithm = "flat-ps", .num_leaders = 5});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
  EXPECT_EQ(refused.error().message,
            "flat-ps: invalid number of leaders 5 (valid: 1 to 4, the number of ranks)");
}

/// Every NIC direction of every server serves at most one lane, and all lanes send.
void expect_disjoint_rings(const std::string& spec, const Plan& plan) {
  for (const Program& program : plan.programs) {
    std::vector<std::set<Rail>> out(plan.shape.lanes.size()), in(plan.shape.lanes.size());
    for (const Step& step : program.steps) {
      if (step.op == StepOp::kSend) out[step.lane].insert(step.rail);
      for (const Source& source : program.sources_of(step)) {
        if (source.kind == Source::Kind::kMessage) in[step.lane].insert(source.rail);
      }
    }
    std::set<Rail> all_out, all_in;
    for (std::size_t lane = 0; lane < out.size(); ++lane) {
      ASSERT_EQ(out[lane].size(), 1u) << spec << " rank " << program.rank;
      ASSERT_EQ(in[lane].size(), 1u) << spec << " rank " << program.rank;
      ASSERT_TRUE(all_out.insert(*out[lane].begin()).second) << spec << " rank " << program.rank;
      ASSERT_TRUE(all_in.insert(*in[lane].begin()).second) << spec << " rank " << program.rank;
    }
  }
}

TEST(FlatRing, OneRingOfNeighboursExistsOnEveryMixOfRadices) {
  for (const std::string& mix : radix_mixes(24)) {
    for (const std::string& spec : {bcube_spec(mix), "torus:" + mix}) {
      const Plan plan = plan_of(spec, {.algorithm = "flat-ring", .num_rings = 1});
      EXPECT_EQ(plan.shape.lanes.size(), 1u);
      EXPECT_TRUE(plan.shape.neighbours_only);
      expect_correct(spec, {.algorithm = "flat-ring", .num_rings = 1});
    }
  }
}

TEST(FlatRing, UsesAllNicsByDisjointRingsOfNeighbours) {
  for (const char* spec :
       {"bcube:3,1",   "bcube:5,1",   "bcube:8,1", "bcube:4x2", "bcube:3,2", "bcube:4,2", "bcube:2,3",
        "bcube:2,5",   "bcube:2x3x4", "torus:4x4", "torus:3x5", "torus:2x2", "torus:6x2", "torus:4x4x4",
        "torus:2x2x2", "torus:3x3x3", "torus:7",   "torus:2",   "rail:9,2",  "rail:16,4", "fattree:4"}) {
    const Topology topology = parse_topology(spec);
    const Plan plan = plan_of(spec, {.algorithm = "flat-ring"});
    EXPECT_EQ(std::ssize(plan.shape.lanes), plan::max_server_rings(topology)) << spec;
    EXPECT_EQ(std::ssize(plan.shape.lanes), topology.num_rails) << spec;
    expect_disjoint_rings(spec, plan);
    EXPECT_EQ(check_links(topology, plan), "") << spec;
  }
}

TEST(FlatRing, UsesAsManyNicsAsThereAreDisjointRings) {
  // In a cube of side 2 there is no choice of links, and three cycles of 8 have another sign than its links.
  const Plan cube = plan_of("bcube:2,2", {.algorithm = "flat-ring"});
  EXPECT_EQ(cube.shape.lanes.size(), 2u);
  EXPECT_THAT(cube.shape.description, testing::HasSubstr("over 2 of 3 NICs"));
  expect_disjoint_rings("bcube:2,2", cube);
  const auto refused =
      plan::make_builder(parse_topology("bcube:2,2"), {.algorithm = "flat-ring", .num_rings = 3});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnsupported);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("2x2x2"));

  const auto large =
      plan::make_builder(parse_topology("bcube:5,2"), {.algorithm = "flat-ring", .num_rings = 3});
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, Code::kUnsupported);
  EXPECT_THAT(large.error().message, testing::HasSubstr("64 servers, not 125"));

  const auto too_many =
      plan::make_builder(parse_topology("rail:4,2"), {.algorithm = "flat-ring", .num_rings = 3});
  ASSERT_FALSE(too_many);
  EXPECT_EQ(too_many.error().code, Code::kInvalidArgument);
}

TEST(FlatRing, GivesTheSameRingsEveryTime) {
  EXPECT_EQ(plan_of("bcube:4,2", {.algorithm = "flat-ring"}),
            plan_of("bcube:4,2", {.algorithm = "flat-ring"}));
}

class RecursiveExchange : public ::testing::TestWithParam<const char*> {};

TEST_P(RecursiveExchange, ReducesInRankOrderSoThatAllRanksComputeTheSameBits) {
  // Reduce operands as texts with brackets of rank numbers; equal texts mean equal bits.
  for (int n = 2; n <= 33; ++n) {
    const Plan plan = plan_of(fmt::format("switch:{}", n), {.algorithm = GetParam()});
    std::vector<std::string> value(n);
    std::map<std::tuple<Rank, Rank, int>, std::string> in_flight;
    std::vector<std::size_t> at(n, 0);
    for (int r = 0; r < n; ++r) value[r] = fmt::format("{}", r);
    for (bool moved = true; moved;) {
      moved = false;
      for (int r = 0; r < n; ++r) {
        const Program& program = plan.programs[r];
        if (at[r] == program.steps.size()) continue;
        const Step& step = program.steps[at[r]];
        std::vector<std::string> operands;
        bool ready = true;
        for (const Source& source : program.sources_of(step)) {
          const auto message = in_flight.find({source.peer, r, step.stage});
          ready = ready && (source.kind == Source::Kind::kLocal || message != in_flight.end());
          if (ready) operands.push_back(source.kind == Source::Kind::kLocal ? value[r] : message->second);
        }
        if (!ready) continue;
        if (step.op == StepOp::kSend) in_flight[{r, step.peer, step.stage}] = value[r];
        if (step.op == StepOp::kReduce) value[r] = fmt::format("({})", fmt::join(operands, "+"));
        if (step.op == StepOp::kCopy) value[r] = operands.at(0);
        ++at[r];
        moved = true;
      }
    }
    for (int r = 0; r < n; ++r) {
      ASSERT_EQ(at[r], plan.programs[r].steps.size());
      ASSERT_EQ(value[r], value[0]) << "rank " << r << " of " << n;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Flat, RecursiveExchange,
                         ::testing::Values("recursive-doubling", "recursive-multiplying"));

TEST(Registry, NamesAnUnknownAlgorithmAndTheKnownOnes) {
  const auto unknown = plan::make_builder(parse_topology("switch:4"), {.algorithm = "flat-rnig"});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(
      unknown.error().message,
      "unknown algorithm \"flat-rnig\"; expected one of hips, flat-ps, flat-mesh, flat-ring, "
      "recursive-doubling, recursive-multiplying, halving-doubling, binomial-tree, double-tree, bucket, swing, bine, trees");
}

TEST(Registry, RejectsOptionsThatAnAlgorithmDoesNotTake) {
  for (const plan::Algorithm& algorithm : plan::algorithms()) {
    const auto make = [&](PlanRequest request) {
      request.algorithm = algorithm.name;
      const bool of_torus = algorithm.name == "bucket" || algorithm.name == "swing";
      return plan::make_builder(parse_topology(of_torus ? "torus:4" : "switch:4"), request).has_value();
    };
    EXPECT_EQ(make({.patterns = patterns("mesh")}), algorithm.name == "hips");
    EXPECT_EQ(make({.num_leaders = 2}), algorithm.name == "flat-ps");
    EXPECT_EQ(make({.num_rings = 1}), algorithm.name == "flat-ring");
    EXPECT_TRUE(make({}));
  }
}

}  // namespace
}  // namespace hips::tests
