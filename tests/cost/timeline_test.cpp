#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "lib/cost/estimate.hpp"
#include "lib/cost/timeline.hpp"
#include "lib/plan/builder.hpp"

namespace hips {
namespace {

Plan plan_of(const Topology& topology, const std::string& algorithm) {
  return plan::build_all(*value_or_throw(plan::make_builder(topology, {.algorithm = algorithm})));
}

TEST(Timeline, OneMessageTakesItsLatencyAndTheTimeOfItsBytes) {
  // Two servers exchange halves of 2 MB at 1 GB/s: 1 ms and a latency of 1 us for each of two messages in a
  // row.
  const Topology topology = parse_topology("switch:2@8Gb");
  const auto timeline =
      value_or_throw(cost::timeline(topology, plan_of(topology, "flat-ring"), {500'000, 4}));
  EXPECT_EQ(timeline.end_ns, 2 * (1'000'000 + 1000));
}

TEST(Timeline, EveryNicSendsTheCostedBytesOneMessageAtATime) {
  struct Case {
    const char* spec;
    const char* algorithm;
  };
  for (const Case& each :
       {Case{"bcube:3,1", "hips"}, Case{"torus:3x4", "hips"}, Case{"torus:3x4", "halving-doubling"},
        Case{"leafspine:2,3,1/2", "flat-ring"}, Case{"bcube:3,1[0-4]", "trees"}, Case{"rail:4,2", "hips"}}) {
    const Topology topology = parse_topology(each.spec);
    const Plan plan = plan_of(topology, each.algorithm);
    const cost::Volume volume{1'000'003, 4};
    const auto timeline = value_or_throw(cost::timeline(topology, plan, volume));
    const auto cost = cost::estimate(topology, plan.shape, plan.programs, volume);
    std::map<std::tuple<std::int64_t, Rail, bool>, std::int64_t> bytes, free_ns;
    std::int64_t last = 0;
    for (const cost::TimedStep& timed : timeline.steps) {
      EXPECT_GE(timed.begin_ns, last) << "steps are in the order of their times";
      last = timed.begin_ns;
      for (const cost::Passage& passage : timed.passages) {
        const auto nic = std::tuple(passage.server, passage.rail, passage.out);
        bytes[nic] += timed.bytes;
        EXPECT_GE(passage.begin_ns, free_ns[nic]) << each.spec;
        free_ns[nic] = passage.end_ns;
        EXPECT_LE(passage.end_ns, timed.end_ns);
      }
    }
    for (std::int64_t server = 0; server < topology.num_servers(); ++server) {
      for (Rail rail = 0; rail < topology.num_rails; ++rail) {
        const auto& total = cost.loads.total_at(server, rail);
        EXPECT_EQ((bytes[{server, rail, true}]), total.out_bytes) << each.spec << " " << each.algorithm;
        EXPECT_EQ((bytes[{server, rail, false}]), total.in_bytes) << each.spec << " " << each.algorithm;
      }
    }
    // No run is faster than its busiest link.
    EXPECT_GE(static_cast<double>(timeline.end_ns) * 1e-9, cost.bandwidth_seconds * 0.9999) << each.spec;
  }
}

TEST(Timeline, RingsOnEqualLinksTakeTheTimeOfTheCostModel) {
  // Without waiting: the time of the busiest link, and a latency for each step.
  for (const char* spec : {"torus:4x4", "torus:5"}) {
    const Topology topology = parse_topology(spec);
    const Plan plan = plan_of(topology, "hips");
    const cost::Volume volume{1 << 22, 4};
    const auto timeline = value_or_throw(cost::timeline(topology, plan, volume));
    const auto cost = cost::estimate(topology, plan.shape, plan.programs, volume);
    EXPECT_NEAR(static_cast<double>(timeline.end_ns) * 1e-9, cost.seconds(), cost.seconds() * 0.01) << spec;
  }
}

TEST(Timeline, RejectsADeadLinkAndACycle) {
  Topology topology = parse_topology("switch:2");
  Plan plan = plan_of(topology, "flat-ring");
  topology.overrides = {{1, 0, "", "", 0, false}};
  auto timeline = cost::timeline(topology, plan, {1024, 4});
  ASSERT_FALSE(timeline);
  EXPECT_EQ(timeline.error().code, Code::kUnsupported);
  // A message is never sent.
  topology.overrides.clear();
  auto& steps = plan.programs[1].steps;
  steps.erase(std::ranges::find(steps, StepOp::kSend, &Step::op));
  for (Step& step : steps) step.num_deps = 0;
  timeline = cost::timeline(topology, plan, {1024, 4});
  ASSERT_FALSE(timeline);
  EXPECT_EQ(timeline.error().code, Code::kInternal);
}

}  // namespace
}  // namespace hips
