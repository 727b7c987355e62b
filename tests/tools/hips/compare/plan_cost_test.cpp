#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/cost/estimate.hpp"
#include "lib/cost/select.hpp"
#include "lib/plan/builder.hpp"
#include "tools/hips/compare/plan_cost.hpp"
#include "tools/hips/compare/report.hpp"

namespace hips::compare {
namespace {

using ::testing::HasSubstr;
using Sizes = std::vector<std::uint64_t>;

constexpr std::uint64_t kLarge = std::uint64_t{1} << 30U;
/// No program may be counted: closed forms only.
constexpr CountingLimits kNoPrograms{.messages = -1};
/// The programs of all ranks may not be counted.
constexpr CountingLimits kOneProgram{.steps = 0};

Entry entry(const std::string& name, const std::string& spec) {
  return value_or_throw(parse_entries(name, parse_topology(spec))).front();
}

TEST(PlanCost, EqualsTheEstimateIfAllProgramsAreCounted) {
  const Sizes sizes{1024, 4100, 1 << 20};
  for (const char* spec :
       {"bcube:3,1", "torus:3x4", "fattree:4", "leafspine:3,4,2", "rail:5,2/2", "switch:1"}) {
    const Topology topology = parse_topology(spec);
    for (const Entry& each : value_or_throw(parse_entries("all", topology))) {
      const PlanCost plan = estimate_plan(each, sizes);
      // A side of 3 is no power of two.
      if (each.name == "swing") continue;
      ASSERT_EQ(plan.basis, Basis::kAllServers) << spec << " " << each.name << ": " << plan.reason;
      const auto builder = value_or_throw(plan::make_builder(topology, each.request));
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        const auto cost =
            cost::estimate_all(topology, *builder, {static_cast<std::int64_t>(sizes[i] / 4), 4});
        EXPECT_EQ(plan.sizes[i].bytes, sizes[i]);
        EXPECT_EQ(plan.sizes[i].busiest_bytes, cost.busiest.bytes) << spec << " " << each.name;
        EXPECT_EQ(plan.sizes[i].bandwidth_seconds, cost.bandwidth_seconds);
        EXPECT_EQ(plan.num_steps, cost.num_steps);
        EXPECT_GE(plan.sizes[i].latency_seconds, cost.latency_seconds);
        EXPECT_LE(plan.sizes[i].of_bound, 1 + 1e-12) << spec << " " << each.name;
      }
    }
  }
}

TEST(PlanCost, EqualsTheTimeOfTheSelection) {
  for (const char* spec : {"bcube:3,1", "switch:8", "torus:4x4", "rail:8,2"}) {
    const Topology topology = parse_topology(spec);
    const auto selection = value_or_throw(cost::select(topology, cost::Medium::kWires));
    for (const std::uint64_t bytes : {1024ULL, 1ULL << 20U}) {
      const PlanCost plan = estimate_plan(entry("hips", spec), Sizes{bytes});
      // The bytes of one server and of the busiest one differ by some elements.
      EXPECT_NEAR(plan.sizes[0].seconds,
                  cost::expected_seconds(topology, cost::Medium::kWires, selection.candidates[0], bytes),
                  1e-8)
          << spec;
    }
  }
}

TEST(PlanCost, CountsRelaysAsHops) {
  EXPECT_EQ(estimate_plan(entry("flat-mesh", "bcube:3,1"), Sizes{1024}).num_hops, 4);
  EXPECT_EQ(estimate_plan(entry("flat-mesh", "torus:6x6"), Sizes{1024}).num_hops, 2 * 6);
  EXPECT_EQ(estimate_plan(entry("flat-ring", "bcube:3,1"), Sizes{1024}).num_hops, 16);
  EXPECT_EQ(estimate_plan(entry("flat-mesh", "switch:9"), Sizes{1024}).num_hops, 2);
  // Four servers on a square: one hop in each round.
  EXPECT_EQ(estimate_plan(entry("recursive-doubling", "bcube:2,1"), Sizes{1024}).num_hops, 2);
  EXPECT_TRUE(estimate_plan(entry("flat-mesh", "bcube:3,1"), Sizes{1024}).relays);
  // Partners share a switch, since the bits of a rank are those of its digits.
  EXPECT_FALSE(estimate_plan(entry("halving-doubling", "bcube:4,1"), Sizes{1024}).relays);
  EXPECT_FALSE(estimate_plan(entry("hips", "bcube:3,1"), Sizes{1024}).relays);
}

TEST(PlanCost, CountsTheSendersOfAnIncast) {
  EXPECT_EQ(estimate_plan(entry("hips", "bcube:5,1"), Sizes{1024}).fan_in, 4);
  EXPECT_EQ(estimate_plan(entry("hips:ring", "bcube:5,1"), Sizes{1024}).fan_in, 1);
  EXPECT_EQ(estimate_plan(entry("flat-ps", "switch:9"), Sizes{1024}).fan_in, 8);
  EXPECT_EQ(estimate_plan(entry("flat-ring", "torus:3x3"), Sizes{1024}).fan_in, 1);
}

TEST(PlanCost, ScaledFromTheLargestSizeDiffersBySomeElements) {
  for (const char* spec : {"bcube:3,1", "torus:3x4", "switch:7", "bcube:2x4"}) {
    for (const Entry& each : value_or_throw(parse_entries("all", parse_topology(spec)))) {
      if (each.name == "swing") continue;
      const Sizes sizes{1 << 16, 1 << 24};
      const PlanCost counted = estimate_plan(each, sizes);
      const PlanCost scaled = estimate_plan(each, sizes, {.counted_steps = 0});
      EXPECT_FALSE(counted.scaled);
      EXPECT_TRUE(scaled.scaled);
      EXPECT_EQ(scaled.sizes[1].busiest_bytes, counted.sizes[1].busiest_bytes);
      EXPECT_NEAR(static_cast<double>(scaled.sizes[0].busiest_bytes),
                  static_cast<double>(counted.sizes[0].busiest_bytes), 4 * 64)
          << spec << " " << each.name;
    }
  }
}

TEST(PlanCost, OfThreeServersEqualsThatOfAll) {
  for (const char* spec :
       {"bcube:3,1", "bcube:2x4", "bcube:4,2", "torus:3x4", "fattree:4", "leafspine:4,4", "switch:7",
        "switch:16", "switch:23", "rail:5,3", "rail:6,2/2", "bcube:3,1/2", "fattree:4/3"}) {
    const Topology topology = parse_topology(spec);
    auto entries = value_or_throw(parse_entries("all", topology));
    for (const char* more : {"hips:ps:1", "hips:mesh/ring"}) {
      if (topology.levels.back().kind != LevelKind::kRing) entries.push_back(entry(more, spec));
    }
    int num_compared = 0;
    for (const Entry& each : entries) {
      const PlanCost all = estimate_plan(each, Sizes{kLarge});
      const PlanCost some = estimate_plan(each, Sizes{kLarge}, kOneProgram);
      if (some.basis != Basis::kSomeServers) continue;
      ++num_compared;
      EXPECT_EQ(some.num_messages, all.num_messages) << spec << " " << each.name;
      EXPECT_EQ(some.fan_in, all.fan_in) << spec << " " << each.name;
      EXPECT_EQ(some.num_hops, all.num_hops) << spec << " " << each.name;
      EXPECT_NEAR(some.sizes[0].bandwidth_seconds, all.sizes[0].bandwidth_seconds,
                  1e-5 * all.sizes[0].bandwidth_seconds)
          << spec << " " << each.name;
    }
    EXPECT_GE(num_compared, 2) << spec;
  }
}

TEST(ClosedForm, EqualsTheCountOfAllPrograms) {
  int compared = 0;
  for (const char* spec :
       {"bcube:3,1",       "bcube:2x4",       "bcube:4x2x3",       "bcube:5,2",  "torus:3x3", "torus:4x4",
        "torus:5x2",       "torus:6",         "torus:4x3x5",       "fattree:4",  "fattree:6", "leafspine:4,4",
        "leafspine:6,4,1", "leafspine:3,4,2", "switch:2",          "switch:9",   "rail:8,3",  "bcube:3,1/2",
        "torus:4x3/3",     "fattree:4/2",     "leafspine:6,4,1/2", "rail:7,2/3", "switch:5/4"}) {
    const Topology topology = parse_topology(spec);
    std::vector<Entry> entries = value_or_throw(parse_entries(
        "hips,flat-ring,flat-ring:1,flat-mesh,flat-ps,recursive-doubling,halving-doubling,flat-ps:2",
        topology));
    if (topology.levels.back().kind != LevelKind::kRing) {
      entries.push_back(entry("hips:ring", spec));
      entries.push_back(entry("hips:ps:1", spec));
    }
    for (const Entry& each : entries) {
      const PlanCost all = estimate_plan(each, Sizes{kLarge});
      const PlanCost closed = estimate_plan(each, Sizes{kLarge}, kNoPrograms);
      if (all.basis == Basis::kNone || closed.basis == Basis::kNone) continue;
      ASSERT_EQ(closed.basis, Basis::kClosedForm);
      ++compared;
      EXPECT_NEAR(closed.sizes[0].bandwidth_seconds, all.sizes[0].bandwidth_seconds,
                  1e-5 * all.sizes[0].bandwidth_seconds)
          << spec << " " << each.name;
      EXPECT_NEAR(static_cast<double>(closed.sizes[0].busiest_bytes),
                  static_cast<double>(all.sizes[0].busiest_bytes), 1e-5 * static_cast<double>(kLarge) * 100)
          << spec << " " << each.name;
      EXPECT_EQ(closed.num_steps, all.num_steps);
      EXPECT_EQ(closed.num_hops, all.num_hops) << spec << " " << each.name;
      EXPECT_EQ(closed.fan_in, all.fan_in) << spec << " " << each.name;
      if (topology.ranks_per_server == 1) {
        EXPECT_EQ(closed.num_messages, all.num_messages) << spec << " " << each.name;
      }
    }
  }
  EXPECT_GT(compared, 100);
}

TEST(Compare, EstimatesAMillionServersAndGivesTheReasonForMissingEstimates) {
  for (const char* spec : {"bcube:10,5", "torus:100x100x100", "fattree:160", "leafspine:1000,1000,500",
                           "switch:1000000", "rail:1000000,4"}) {
    const Topology topology = parse_topology(spec);
    auto entries = value_or_throw(parse_entries("all", topology));
    for (Entry& each : baseline_entries(topology)) entries.push_back(std::move(each));
    const Comparison comparison = compare(topology, entries, {1024, kLarge});
    EXPECT_NE(comparison.plans[0].basis, Basis::kNone) << spec << ": " << comparison.plans[0].reason;
    for (const PlanCost& plan : comparison.plans) {
      if (plan.basis == Basis::kNone) {
        EXPECT_THAT(plan.reason, ::testing::AnyOf(::testing::HasSubstr("the programs of all"),
                                                  ::testing::HasSubstr("is too many for trees (valid: up to"),
                                                  ::testing::HasSubstr("powers of two")))
            << spec << " " << plan.entry.name;
      } else {
        EXPECT_LE(plan.bandwidth_of_bound, 1.001) << spec << " " << plan.entry.name;
      }
    }
    EXPECT_LT(comparison.best[1], comparison.plans.size());
    EXPECT_FALSE(report_text(comparison).empty());
  }
}

TEST(Compare, TheBestPlanIsTheFastestWithoutRelaysThatIsNoBaseline) {
  const Topology topology = parse_topology("bcube:3,1");
  auto entries = value_or_throw(parse_entries("all", topology));
  for (Entry& each : baseline_entries(topology)) entries.push_back(std::move(each));
  const Comparison comparison = compare(topology, entries, {1024, 1 << 20});
  for (std::size_t i = 0; i < comparison.sizes.size(); ++i) {
    const PlanCost& best = comparison.plans[comparison.best[i]];
    EXPECT_FALSE(best.relays || best.entry.baseline);
    for (const PlanCost& other : comparison.plans) {
      if (other.relays || other.entry.baseline) continue;
      EXPECT_LE(best.sizes[i].seconds, other.sizes[i].seconds);
    }
  }
  EXPECT_EQ(comparison.selected.back().up_to_bytes, UINT64_MAX);
}

TEST(Compare, ShowsWhyAPlanCannotBeBuilt) {
  const PlanCost plan = estimate_plan(entry("flat-ring:3", "bcube:2,2"), Sizes{1024});
  EXPECT_EQ(plan.basis, Basis::kNone);
  EXPECT_THAT(plan.reason, HasSubstr("the signs of the permutations"));
  const Topology topology = parse_topology("bcube:2,2");
  const Comparison comparison = compare(topology, std::vector{entry("flat-ring:3", "bcube:2,2")}, {1024});
  EXPECT_EQ(comparison.best[0], 1U);
  EXPECT_THAT(report_text(comparison), HasSubstr("flat-ring:3  no estimate: "));
}

}  // namespace
}  // namespace hips::compare
