// HiPS loads all NICs equally: bytes counted from the programs alone.

#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "tests/plan/radix_mixes.hpp"
#include "tests/plan/support.hpp"

namespace hips::tests {
namespace {

/// Elements by (stage, rank, NIC, out or in); stage -1 holds the totals.
using Load = std::map<std::tuple<std::int32_t, Rank, Rail, bool>, std::int64_t>;

Load load_of(const Plan& plan, std::int64_t count) {
  Load load;
  for (const Program& program : plan.programs) {
    for (const Step& step : program.steps) {
      const std::int64_t elements = plan.shape.blocks.elements(step.dst.blocks, count);
      const auto add = [&](Rail rail, bool out) {
        load[{step.stage, program.rank, rail, out}] += elements;
        load[{-1, program.rank, rail, out}] += elements;
      };
      if (step.op == StepOp::kSend) add(step.rail, true);
      for (const Source& source : program.sources_of(step)) {
        if (source.kind == Source::Kind::kMessage) add(source.rail, false);
      }
    }
  }
  return load;
}

TEST(Balance, EqualRadicesLoadEveryNicDirectionEquallyAtEveryStage) {
  for (const char* spec :
       {"bcube:3,1", "bcube:2,3", "bcube:4,2", "torus:4x4", "torus:3x3x3", "bcube:2,5", "rail:9,2"}) {
    const Plan plan = plan_of(spec);
    const Rank ranks = plan.shape.num_ranks;
    const std::int64_t count = plan.shape.blocks.num_blocks * 5;  // all blocks are of one size
    std::map<std::int32_t, std::set<std::int64_t>> by_stage;
    for (const auto& [where, elements] : load_of(plan, count)) by_stage[std::get<0>(where)].insert(elements);
    for (const auto& [stage, loads] : by_stage) EXPECT_EQ(loads.size(), 1u) << spec << " stage " << stage;
    // 2(N-1)/(N*K) of the vector: the bound.
    const std::int64_t nics = parse_topology(spec).num_rails;
    EXPECT_EQ(*by_stage[-1].begin() * ranks * nics, 2 * (ranks - 1) * count) << spec;
  }
}

TEST(Balance, MixedRadicesLoadEveryNicDirectionEquallyInAll) {
  for (const std::string& mix : radix_mixes(48)) {
    for (const std::string& spec : {bcube_spec(mix), "torus:" + mix}) {
      const Topology topology = parse_topology(spec);
      const Plan plan = plan_of(spec);
      // A size at which every block is a whole number of elements.
      std::int64_t count = 1;
      for (const BlockMap::Part& part : plan.shape.blocks.parts) {
        const std::int64_t num = part.end.num * part.begin.den - part.begin.num * part.end.den;
        const std::int64_t den = part.end.den * part.begin.den * part.blocks.count;
        count = std::lcm(count, den / std::gcd(num, den));
        count = std::lcm(count, part.begin.den);
      }
      const std::int64_t ranks = plan.shape.num_ranks, nics = topology.num_rails;
      count = std::lcm(count, ranks * nics);
      std::int64_t seen = 0;
      for (const auto& [where, elements] : load_of(plan, count)) {
        if (std::get<0>(where) != -1) continue;
        ++seen;
        ASSERT_EQ(elements * ranks * nics, 2 * (ranks - 1) * count) << spec << " rank " << std::get<1>(where);
      }
      ASSERT_EQ(seen, ranks * nics * 2) << spec << ": a NIC direction is idle";
    }
  }
}

TEST(Balance, SizesThatDoNotDivideStayWithinAGroupOfElementsAtEveryStage) {
  for (const char* spec : {"bcube:3,1", "bcube:2,3", "bcube:2x4", "bcube:4x3x2", "bcube:5x2"}) {
    const Topology topology = parse_topology(spec);
    const Plan plan = plan_of(spec);
    const std::int64_t ranks = plan.shape.num_ranks;
    for (const std::int64_t count : {std::int64_t{0}, std::int64_t{1}, ranks - 1, ranks, ranks + 1,
                                     std::int64_t{997}, std::int64_t{1'000'003}}) {
      Load load = load_of(plan, count);
      for (const LaneInfo& lane : plan.shape.lanes) {
        // The lane's share of the vector, exactly.
        double live = static_cast<double>(count);
        for (const BlockMap::Part& part : plan.shape.blocks.parts) {
          if (lane.blocks.first < part.blocks.first || lane.blocks.first >= part.blocks.end()) continue;
          live *= (static_cast<double>(part.end.num) / static_cast<double>(part.end.den) -
                   static_cast<double>(part.begin.num) / static_cast<double>(part.begin.den)) *
                  static_cast<double>(lane.blocks.count) / static_cast<double>(part.blocks.count);
        }
        const auto num_stages = static_cast<std::int32_t>(lane.stages.size());
        for (std::int32_t i = 0; i < num_stages / 2; ++i) {
          const Level& level = topology.levels[lane.stages[i].level];
          const auto radix = static_cast<double>(level.radix);
          const double ideal = live * (1 - 1 / radix);
          for (const std::int32_t stage : {i, num_stages - 1 - i}) {
            for (Rank rank = 0; rank < ranks; ++rank) {
              for (const bool out : {false, true}) {
                const double off = static_cast<double>(load[{stage, rank, level.rails[0], out}]) - ideal;
                ASSERT_LE(std::abs(off), radix - 1 + 1e-6)
                    << spec << " count " << count << " stage " << stage << " rank " << rank;
              }
            }
          }
          live /= radix;
        }
      }
    }
  }
}

TEST(OwnerMap, GivesEveryBlockToExactlyOneRank) {
  const auto expect_bijection = [](const std::string& spec, const PlanRequest& request) {
    const Plan plan = plan_of(spec, request);
    std::vector<int> owners(plan.shape.blocks.num_blocks, 0);
    for (const Program& program : plan.programs) {
      for (const BlockRange& range : program.owned) {
        for (BlockIdx block = range.first; block < range.end(); ++block) ++owners[block];
      }
    }
    for (const int count : owners) ASSERT_EQ(count, 1) << spec << ", " << plan.shape.description;
  };
  for (const std::string& mix : radix_mixes(36)) {
    expect_bijection(bcube_spec(mix), {});
    expect_bijection("torus:" + mix, {});
    expect_bijection(bcube_spec(mix), {.patterns = patterns("ps:1")});
    expect_bijection(bcube_spec(mix), {.patterns = patterns("ps:2")});
    expect_bijection(bcube_spec(mix), {.algorithm = "halving-doubling"});
  }
}

TEST(BlockMap, CutsAnyNumberOfElementsWithoutOverflow) {
  BlockMap map{.parts = {{{0, 9}, {0, 1}, {5, 6}}, {{9, 9}, {5, 6}, {1, 1}}}, .num_blocks = 18};
  for (const std::int64_t count : {std::int64_t{0}, std::int64_t{1}, std::int64_t{17},
                                   std::int64_t{1'000'003}, std::int64_t{INT64_MAX}}) {
    EXPECT_EQ(map.boundary(0, count), 0);
    EXPECT_EQ(map.boundary(18, count), count);
    for (BlockIdx block = 0; block < 18; ++block) {
      EXPECT_LE(map.boundary(block, count), map.boundary(block + 1, count)) << block;
    }
  }
  EXPECT_EQ(map.boundary(9, 600), 500);
  EXPECT_EQ(map.boundary(9, 601), 500);  // floor(601 * 5/6)
  EXPECT_EQ(map.boundary(4, 601), 222);  // floor(4 * 500 / 9)
  EXPECT_EQ(map.elements({9, 9}, 601), 101);
  // The larger blocks are spread over the vector, rather than being the first ones.
  BlockMap even{.parts = {{{0, 18}, {0, 1}, {1, 1}}}, .num_blocks = 18};
  EXPECT_EQ(even.boundary(9, 19), 9);
  EXPECT_EQ(even.elements({9, 9}, 19), 10);
}

TEST(Scale, TheProgramOfOneRankOfAMillionHasItsOwnMessagesOnly) {
  const Topology topology = parse_topology("bcube:10,5");
  const auto builder = value_or_throw(plan::make_builder(topology, {.algorithm = "hips"}));
  const Program program = builder->program(123456);
  // 6 lanes x 6 levels x (9 sends + 1 reduction in the scatter, 9 sends + 9 copies in the gather).
  EXPECT_EQ(program.steps.size(), 6u * 6u * 28u);
  EXPECT_EQ(program.owned.size(), 6u);
  // The dependencies of wide groups are linear in their size: sends of a stage share one list.
  const auto wide = value_or_throw(plan::make_builder(parse_topology("bcube:1000,1"), {.algorithm = "hips"}));
  const Program row = wide->program(123456);
  EXPECT_EQ(row.steps.size(), 2u * 2u * (3u * 999u + 1u));
  EXPECT_LT(row.deps.size(), 3 * row.steps.size());
}

TEST(Patterns, AreParsedOrRejectedByName) {
  EXPECT_EQ(patterns("mesh"), (std::vector<LevelPattern>{{Pattern::kMesh, Pattern::kMesh, 0}}));
  EXPECT_EQ(patterns("ring,ps:2"), (std::vector<LevelPattern>{{Pattern::kRing, Pattern::kRing, 0},
                                                              {Pattern::kPs, Pattern::kPs, 2}}));
  EXPECT_EQ(patterns("mesh/ring"), (std::vector<LevelPattern>{{Pattern::kMesh, Pattern::kRing, 0}}));
  EXPECT_EQ(patterns("ps"), (std::vector<LevelPattern>{{Pattern::kPs, Pattern::kPs, 1}}));
  for (const char* wrong : {"", "mehs", "mesh,", ",", "ps:0", "ps:-1", "ps:x", "ps:99999999999", "ps:2/mesh",
                            "mesh/ps:2", "mesh/", "ps:2/ps:3", "mesh/ring/mesh", "Mesh"}) {
    const auto parsed = plan::parse_patterns(wrong);
    ASSERT_FALSE(parsed) << wrong;
    EXPECT_EQ(parsed.error().code, Code::kInvalidArgument);
    EXPECT_NE(parsed.error().message.find(std::string("\"") + wrong + "\""), std::string::npos)
        << parsed.error().message;
  }
  const auto too_long =
      plan::make_builder(parse_topology("bcube:3,1"), {.patterns = patterns("mesh,ring,mesh")});
  ASSERT_FALSE(too_long);
  EXPECT_EQ(too_long.error().message, "pattern: 3 patterns for 2 levels; give one for all or one per level");
  const auto too_many = plan::make_builder(parse_topology("bcube:3,1"), {.patterns = patterns("ps:4")});
  ASSERT_FALSE(too_many);
  EXPECT_EQ(too_many.error().message,
            "pattern: invalid ps:4 for level 0 (valid: ps:1 to ps:3, the size of its groups)");
}

}  // namespace
}  // namespace hips::tests
