#include "lib/plan/check/check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/plan/builder.hpp"
#include "tests/plan/brute_force.hpp"
#include "tests/plan/check_tiny_plan.hpp"
#include "tests/plan/report_text.hpp"

namespace hips::tests {
namespace {

using plan::check;
using plan::CheckOptions;
using plan::CheckReport;
using plan::FindingKind;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

Plan bcube_3_1() {
  return plan::build_all(**plan::make_builder(parse_topology("bcube:3,1"), {}));
}

TEST(CheckTest, ProvesAPlanOfTwoRanks) {
  const CheckReport report = check(pair_plan());
  EXPECT_TRUE(report.ok()) << text_of(report);
  EXPECT_EQ(report.num_ranks, 2);
  EXPECT_EQ(report.num_blocks, 2);
  EXPECT_EQ(report.num_steps, 8);
  EXPECT_EQ(report.num_messages, 4);
}

TEST(CheckTest, CountsOnlyMessagesThatHaveElements) {
  // One element: block 0 is empty and nothing of it is sent.
  EXPECT_EQ(check(pair_plan(), {.count = 1}).num_messages, 2);
  EXPECT_EQ(check(pair_plan(), {.count = 0}).num_messages, 0);
  EXPECT_TRUE(check(pair_plan(), {.count = 0}).ok());
}

TEST(CheckTest, NamesALostContributionAndTheStepThatLosesIt) {
  const Topology topology = parse_topology("bcube:3,1");
  Plan plan = bcube_3_1();
  // Rank 4's last reduction forgets its own partial sum: {3, 4, 5} is missing in block of lane 0.
  Program& program = plan.programs[4];
  Step* reduce = nullptr;
  for (Step& step : program.steps) {
    if (step.op == StepOp::kReduce && step.lane == 0 && step.stage == 1) reduce = &step;
  }
  ASSERT_NE(reduce, nullptr);
  for (std::int32_t i = 0; i < reduce->num_sources; ++i) {
    Source& source = program.sources[reduce->first_source + i];
    if (source.kind == Source::Kind::kLocal) {
      std::swap(source, program.sources[reduce->first_source + reduce->num_sources - 1]);
      --reduce->num_sources;
      break;
    }
  }
  const CheckReport report = check(plan, {.topology = &topology});
  EXPECT_TRUE(report.has(FindingKind::kLost));
  EXPECT_THAT(text_of(report),
              AllOf(HasSubstr("lost contribution: output block 4 of server <00> misses the contribution "
                              "of servers <10>, <11>, <12>"),
                    HasSubstr("server <11>, step "), HasSubstr("lane 0, scatter stage 1")));
}

TEST(CheckTest, NamesAContributionThatIsAddedTwice) {
  Plan plan = pair_plan();
  // Rank 1 adds its own input a second time.
  Program& program = plan.programs[1];
  Step& reduce = program.steps[1];
  const std::vector<Source> sources{local(in(1)), from(0), local(in(1))};
  reduce.first_source = static_cast<std::int32_t>(program.sources.size());
  reduce.num_sources = 3;
  program.sources.insert(program.sources.end(), sources.begin(), sources.end());
  const CheckReport report = check(plan);
  EXPECT_TRUE(report.has(FindingKind::kDoubled));
  EXPECT_THAT(
      text_of(report),
      AllOf(HasSubstr("output block 1 of rank 0 holds the contribution of rank 1 more than once"),
            HasSubstr(
                "rank 1, step 1 (reduce, lane 0, scatter stage 0, round 0, block 1): local with the input "
                "of rank 1, message from rank 0 with the input of rank 0, local with the input of rank 1")));
}

TEST(CheckTest, FindsASendWithoutReceive) {
  Plan plan = pair_plan();
  plan.programs[0].steps.pop_back();
  EXPECT_THAT(text_of(check(plan)),
              HasSubstr("unmatched transfer: send without receive: no step of rank 0 receives what "
                        "rank 1 sends in step 2"));
}

TEST(CheckTest, FindsAReceiveWithoutSend) {
  Plan plan = pair_plan();
  plan.programs[1].steps[2].round = 5;
  EXPECT_THAT(text_of(check(plan)),
              AllOf(HasSubstr("receive without send: rank 0, step 3"), HasSubstr("send without receive")));
}

TEST(CheckTest, FindsTwoMessagesWithOneName) {
  Plan plan = pair_plan();
  plan.programs[0].steps[2].stage = 0;
  EXPECT_THAT(text_of(check(plan)), HasSubstr("rank 0 sends two messages with one name: step 0"));
}

TEST(CheckTest, FindsEndsThatNameDifferentBlocks) {
  TinyPlan tiny(2, 4);
  tiny.send(0, 1, 0, in(2, 2));
  tiny.reduce(1, 0, out(1, 2), {local(in(1, 2)), from(0)});
  EXPECT_THAT(
      text_of(check(tiny.take())),
      HasSubstr("the two ends of a message name different blocks: rank 0 sends blocks 2-3 in step 0, rank 1 "
                "receives blocks 1-2 in step 0"));
}

TEST(CheckTest, PrintsADeadlockAsTheShortestCycle) {
  Plan plan = pair_plan();
  // Both ranks send only after they have received.
  for (Program& program : plan.programs) {
    std::swap(program.steps[0], program.steps[1]);
    program.steps[1].first_dep = static_cast<std::int32_t>(program.deps.size());
    program.steps[1].num_deps = 1;
    program.deps.push_back(0);
    program.deps[program.steps[2].first_dep] = 0;
    program.deps[program.steps[3].first_dep] = 1;
  }
  const CheckReport report = check(plan);
  EXPECT_TRUE(report.has(FindingKind::kDeadlock));
  ASSERT_EQ(report.findings.front().kind, FindingKind::kDeadlock);
  EXPECT_EQ(report.findings.front().example.size(), 4U) << text_of(report);
  EXPECT_THAT(text_of(report),
              AllOf(HasSubstr("deadlock: 4 steps wait for one another with 1 credit and 1 segment"),
                    HasSubstr("rank 0, step 0 (reduce, lane 0, scatter stage 0, round 0, block 0) receives "
                              "the message of rank 1, step 1 (send to rank 0"),
                    HasSubstr("rank 1, step 1 (send to rank 0, lane 0, scatter stage 0, round 0, block "
                              "0) comes after rank 1, step 0")));
  EXPECT_EQ(brute_force(plan, {.count = 8}), "deadlock");
}

TEST(CheckTest, FindsADeadlockThatOnlyOneCreditCauses) {
  // Rank 0 sends block 0, then block 1; rank 1 receives block 1 first and block 0 only after that.
  TinyPlan tiny(2, 2);
  tiny.send(0, 1, 0, in(0));
  tiny.send(0, 1, 1, in(1));
  const StepId second = tiny.reduce(1, 1, out(1), {from(0), local(in(1))});
  const StepId first = tiny.reduce(1, 0, out(0), {from(0), local(in(0))}, {second});
  tiny.send(1, 0, 10, out(0), {first});
  tiny.send(1, 0, 11, out(1), {second});
  tiny.copy(0, 10, out(0), from(1), {0});
  tiny.copy(0, 11, out(1), from(1), {1});
  tiny.own(1, 0, 2);
  const Plan plan = tiny.take();
  const CheckReport one = check(plan, {.credits = 1});
  EXPECT_TRUE(one.has(FindingKind::kDeadlock));
  EXPECT_THAT(text_of(one), HasSubstr("needs the slot that is returned by"));
  const CheckReport two = check(plan, {.credits = 2});
  EXPECT_TRUE(two.ok()) << text_of(two);
  EXPECT_EQ(brute_force(plan, {.count = 8, .credits = 1}), "deadlock");
  EXPECT_EQ(brute_force(plan, {.count = 8, .credits = 2}), "");
}

TEST(CheckTest, FindsAnOverwriteBeforeLocalCompletion) {
  Plan plan = pair_plan();
  // Rank 0's copy no longer waits for its first send. In place both touch block 1.
  plan.programs[0].steps[3].num_deps = 0;
  const CheckReport in_place = check(plan, {.out_of_place = false});
  EXPECT_TRUE(in_place.has(FindingKind::kOverlap));
  EXPECT_THAT(text_of(in_place),
              HasSubstr("block 1 of rank 0, in place: step 3 may write it before step 0 has read it; "
                        "nothing makes it wait for the local completion of step 0"));
  // Out of place one is in the input, the other in the output.
  EXPECT_TRUE(check(plan, {.in_place = false}).ok());
}

TEST(CheckTest, FindsASendThatDoesNotWaitForItsSource) {
  Plan plan = pair_plan();
  plan.programs[1].steps[2].num_deps = 0;
  EXPECT_THAT(text_of(check(plan)),
              HasSubstr("block 1 of rank 1, in place: step 2 may read it before step 1 has "
                        "written it; nothing makes it wait for step 1"));
}

TEST(CheckTest, AcceptsOrderThatComesFromAMessageOfAPeer) {
  // Rank 0 sends block 0, written by step 0, only after a message that rank 1 sends on getting block 1, which
  // rank 0 sends after step 0: no dependency says so, but the order does.
  TinyPlan tiny(2, 2, 2);
  const StepId write = tiny.copy(0, 0, out(0), local(in(0)));
  tiny.send(0, 1, 1, in(1), {write});
  const StepId pong = tiny.reduce(0, 2, out(1), {local(in(1)), from(1)});
  tiny.send(0, 1, 3, out(0), {pong});
  const StepId got = tiny.copy(1, 1, scratch(1), from(0));
  tiny.send(1, 0, 2, in(1), {got});
  tiny.copy(1, 3, scratch(0), from(0));
  Plan plan = tiny.take();
  // The last message has a lane of its own: in one channel sends start in order anyway.
  plan.shape.lanes.push_back(plan.shape.lanes[0]);
  plan.programs[0].steps[3].lane = plan.programs[1].steps[2].lane = 1;
  EXPECT_FALSE(check(plan, {.in_place = false}).has(FindingKind::kOverlap));
  // Without the order on rank 1 there is none between steps 0 and 3.
  plan.programs[1].steps[1].num_deps = 0;
  EXPECT_THAT(text_of(check(plan, {.in_place = false})),
              HasSubstr("step 3 may read it before step 0 has written it"));
}

TEST(CheckTest, ConsidersThatSendsOfOneChannelStartInOrder) {
  // Step 2 waits for nothing, but follows step 1 in its channel, and step 1 waits for step 0.
  TinyPlan tiny(2, 2, 2);
  const StepId write = tiny.copy(0, 0, out(0), local(in(0)));
  tiny.send(0, 1, 1, in(1), {write});
  tiny.send(0, 1, 2, out(0));
  tiny.copy(1, 1, scratch(1), from(0));
  tiny.copy(1, 2, scratch(0), from(0));
  Plan plan = tiny.take();
  EXPECT_FALSE(check(plan, {.in_place = false}).has(FindingKind::kOverlap));
  std::swap(plan.programs[0].steps[1], plan.programs[0].steps[2]);
  EXPECT_TRUE(check(plan, {.in_place = false}).has(FindingKind::kOverlap));
}

TEST(CheckTest, DoesNotTreatAnArrivalAsALocalCompletion) {
  // Rank 0 overwrites block 0 after rank 1 has answered the message with it.
  TinyPlan tiny(2, 1, 1);
  tiny.send(0, 1, 0, in(0));
  const StepId sum = tiny.reduce(1, 0, out(0), {from(0), local(in(0))});
  tiny.send(1, 0, 10, out(0), {sum});
  tiny.copy(0, 10, out(0), from(1));
  tiny.own(1, 0);
  Plan plan = tiny.take();
  EXPECT_TRUE(check(plan, {.in_place = false}).ok());
  EXPECT_TRUE(check(plan, {.out_of_place = false}).has(FindingKind::kOverlap));
}

TEST(CheckTest, DoesNotRelyOnOrderThatComesFromFewCredits) {
  // Rank 0 writes scratch twice. Only the credit orders the writes: the second message needs the slot of the
  // first.
  TinyPlan tiny(2, 1, 1);
  tiny.send(1, 0, 0, in(0));
  tiny.send(1, 0, 1, in(0));
  tiny.copy(0, 0, scratch(0), from(1));
  tiny.copy(0, 1, scratch(0), from(1));
  EXPECT_TRUE(check(tiny.take(), {.credits = 1}).has(FindingKind::kOverlap));
}

TEST(CheckTest, FindsAHazardThatOnlySegmentsHave) {
  // Step 0 writes blocks 0-3. Step 1 comes after it but touches only block 3; step 2 comes after step 1 and
  // reads blocks 0-3. With whole messages that is an order, with segments block 0 of step 2 waits for
  // nothing.
  TinyPlan tiny(2, 4, 4);
  const StepId write = tiny.reduce(0, 0, out(0, 4), {from(1), local(in(0, 4))});
  const StepId touch = tiny.reduce(0, 1, out(3), {local(out(3))}, {write});
  tiny.send(0, 1, 10, out(0, 4), {touch});
  tiny.send(1, 0, 0, in(0, 4));
  tiny.copy(1, 10, out(0, 4), from(0), {0});
  tiny.own(0, 0, 4);
  const Plan plan = tiny.take();
  const CheckReport whole = check(plan);
  EXPECT_TRUE(whole.ok()) << text_of(whole);
  const CheckReport segmented = check(plan, {.segments = 4});
  EXPECT_TRUE(segmented.has(FindingKind::kOverlap));
  bool seen = false;
  for (std::uint64_t seed = 0; seed < 200 && !seen; ++seed) {
    seen = !brute_force(plan, {.count = 16, .segments = 4, .seed = seed}).empty();
  }
  EXPECT_TRUE(seen) << "the hazard is real";
}

TEST(CheckTest, OrdersNothingThroughStepsWithoutElements) {
  // Step 0 writes block 0, step 1 is over block 1, step 2 reads block 0 and comes after step 1 only.
  TinyPlan tiny(1, 2, 4);
  const StepId write = tiny.copy(0, 0, out(0), local(in(0)));
  const StepId between = tiny.copy(0, 1, out(1), local(in(1)), {write});
  tiny.copy(0, 2, scratch(0), local(out(0)), {between});
  Plan plan = tiny.take();
  plan.shape.blocks.parts = {{{0, 1}, {0, 1}, {1, 1}}, {{1, 1}, {1, 1}, {1, 1}}};
  EXPECT_TRUE(check(plan, {.in_place = false}).has(FindingKind::kOverlap)) << "block 1 has no share";
  plan.shape.blocks.parts = {{{0, 2}, {0, 1}, {1, 1}}};
  EXPECT_FALSE(check(plan, {.in_place = false}).has(FindingKind::kOverlap));
}

TEST(CheckTest, FindsReadsOfUnwrittenBlocks) {
  TinyPlan tiny(2, 2, 2);
  tiny.send(0, 1, 0, scratch(1));
  tiny.reduce(1, 0, out(1), {from(0), local(in(1))});
  const CheckReport report = check(tiny.take());
  EXPECT_THAT(
      text_of(report),
      AllOf(HasSubstr(
                "unwritten block: rank 0, step 0 (send to rank 1, lane 0, scatter stage 0, round 0, block "
                "1) reads scratch block 1, of which block 1 has not been written by then"),
            HasSubstr("output block 0 of rank 0 is never written (out of place)")));
}

TEST(CheckTest, FindsAGatherOfAnUnfinishedBlock) {
  Plan plan = pair_plan();
  // Rank 0 sends back its input instead of the sum.
  Program& program = plan.programs[0];
  program.sources[program.steps[2].first_source].local = in(0);
  const CheckReport report = check(plan, {.in_place = false});
  EXPECT_THAT(
      text_of(report),
      AllOf(HasSubstr(
                "owner mismatch: the gather sends a block that the scatter has not finished: rank 0, step 2"),
            HasSubstr("lost contribution: output block 0 of rank 1 misses the contribution of rank 1")));
}

TEST(CheckTest, FindsAnOwnerTableThatTheStepsContradict) {
  Plan plan = pair_plan();
  std::swap(plan.programs[0].owned, plan.programs[1].owned);
  EXPECT_THAT(text_of(check(plan)), HasSubstr("block 0: rank 0 completes its sum, but does not own it"));
  EXPECT_THAT(text_of(check(plan)), HasSubstr("block 0: rank 1 owns it by the plan's table"));
}

TEST(CheckTest, FindsMessagesThatHaveNoLinkOrUseAWrongNic) {
  const Topology topology = parse_topology("bcube:3,1");
  Plan plan = bcube_3_1();
  ASSERT_TRUE(check(plan, {.topology = &topology}).ok());
  for (Step& step : plan.programs[0].steps) {
    if (step.op == StepOp::kSend) {
      step.rail = 1 - step.rail;
      break;
    }
  }
  EXPECT_THAT(text_of(check(plan, {.topology = &topology})),
              AllOf(HasSubstr("no link: server <00>, step 0 (send to server <01>"),
                    HasSubstr("leaves by NIC 1 and arrives by NIC 0, but the link leaves by NIC 0")));

  const Topology other = parse_topology("bcube:9,0");
  EXPECT_TRUE(check(plan, {.topology = &other}).has(FindingKind::kNoLink));
  const Topology small = parse_topology("bcube:2,1");
  EXPECT_THAT(text_of(check(plan, {.topology = &small})),
              HasSubstr("the plan is for 9 ranks, but BCube(2,1) has 4"));
}

TEST(CheckTest, NotesLoadsWithoutFailing) {
  const Topology topology = parse_topology("rail:9,2");
  const auto builder = plan::make_builder(topology, {.patterns = {{Pattern::kPs, Pattern::kPs, 1}}});
  ASSERT_TRUE(builder) << builder.error().message;
  const CheckReport report = check(plan::build_all(**builder), {.topology = &topology});
  EXPECT_TRUE(report.ok()) << text_of(report);
  EXPECT_TRUE(report.has(FindingKind::kUnequalLoad)) << text_of(report);
  EXPECT_TRUE(report.has(FindingKind::kFanIn)) << text_of(report);
}

TEST(CheckTest, ReportsAFewFindingsOfEachKindAndCountsTheRest) {
  Plan plan = bcube_3_1();
  for (Program& program : plan.programs) program.owned.clear();
  const CheckReport report = check(plan, {.max_findings_per_kind = 2});
  EXPECT_EQ(report.findings.size(), 2U);
  EXPECT_EQ(report.num_errors(), 18) << "nine ranks, in place and out of place";
}

// ---- Stored files may contain anything -------------------------------------------------------------------

struct MalformedPlan {
  const char* name;
  void (*spoil)(Plan&);
  const char* text;
};

class MalformedPlanTest : public ::testing::TestWithParam<MalformedPlan> {};

TEST_P(MalformedPlanTest, IsReportedInOneSentence) {
  Plan plan = pair_plan();
  GetParam().spoil(plan);
  const CheckReport report = check(plan);
  EXPECT_FALSE(report.ok());
  EXPECT_THAT(text_of(report), HasSubstr(GetParam().text));
}

constexpr std::int64_t kHuge = INT64_MAX;

INSTANTIATE_TEST_SUITE_P(
    Plans, MalformedPlanTest,
    ::testing::Values(
        MalformedPlan{"no_rank", [](Plan& p) { p.shape.num_ranks = 0; },
                      "invalid number of ranks 0 (valid: 1 or more)"},
        MalformedPlan{"more_ranks", [](Plan& p) { p.shape.num_ranks = INT32_MAX; },
                      "2 programs for 2147483647 ranks"},
        MalformedPlan{"rank", [](Plan& p) { p.programs[1].rank = 7; },
                      "program 1 is for rank 7; programs must be in rank order"},
        MalformedPlan{"no_block", [](Plan& p) { p.shape.blocks.num_blocks = 0; },
                      "block map: invalid number of blocks 0 (valid: 1 to 134217728)"},
        MalformedPlan{"huge", [](Plan& p) { p.shape.blocks.num_blocks = kHuge; },
                      "block map: invalid number of blocks 9223372036854775807"},
        MalformedPlan{"scratch", [](Plan& p) { p.shape.blocks.num_scratch_blocks = -1; },
                      "block map: invalid number of scratch blocks -1"},
        MalformedPlan{"many_values",
                      [](Plan& p) {
                        p.shape.blocks.num_blocks = 100'000'000;
                        p.shape.blocks.parts[0].blocks.count = 100'000'000;
                      },
                      "the checker holds at most 134217728 block values"},
        MalformedPlan{"no_part", [](Plan& p) { p.shape.blocks.parts.clear(); }, "block map: no part"},
        MalformedPlan{"part_short", [](Plan& p) { p.shape.blocks.parts[0].blocks.count = 1; },
                      "the parts end at block 1 of 2"},
        MalformedPlan{"part_huge", [](Plan& p) { p.shape.blocks.parts[0].blocks.count = kHuge; },
                      "must begin at block 0"},
        MalformedPlan{"share",
                      [](Plan& p) {
                        p.shape.blocks.parts[0].end = {1, 2};
                      },
                      "at the share 1/2; they must cover"},
        MalformedPlan{"den",
                      [](Plan& p) {
                        p.shape.blocks.parts[0].begin = {0, 0};
                      },
                      "part 0 has the invalid begin 0/0"},
        MalformedPlan{"backwards",
                      [](Plan& p) {
                        p.shape.blocks.parts = {{{0, 1}, {0, 1}, {1, 1}}, {{1, 1}, {1, 1}, {1, 2}}};
                      },
                      "it must begin at 1/1 and ascend"},
        MalformedPlan{"op", [](Plan& p) { p.programs[0].steps[0].op = static_cast<StepOp>(9); },
                      "unknown operation 9"},
        MalformedPlan{"buffer", [](Plan& p) { p.programs[0].steps[1].dst.buffer = static_cast<Buffer>(9); },
                      "unknown buffer 9"},
        MalformedPlan{"phase", [](Plan& p) { p.programs[0].steps[1].phase = static_cast<Phase>(9); },
                      "unknown phase 9"},
        MalformedPlan{"kind", [](Plan& p) { p.programs[0].sources[0].kind = static_cast<Source::Kind>(9); },
                      "unknown kind 9"},
        MalformedPlan{"lane", [](Plan& p) { p.programs[0].steps[0].lane = 3; },
                      "has the invalid lane 3; the plan has 1 lanes"},
        MalformedPlan{"stage", [](Plan& p) { p.programs[0].steps[0].stage = -1; },
                      "has the invalid stage -1"},
        MalformedPlan{"round", [](Plan& p) { p.programs[0].steps[0].round = -1; },
                      "has the invalid round -1"},
        MalformedPlan{"peer", [](Plan& p) { p.programs[0].steps[0].peer = 2; },
                      "sends to rank 2, which is out of range [0, 1]"},
        MalformedPlan{"self", [](Plan& p) { p.programs[0].steps[0].peer = 0; }, "sends to itself"},
        MalformedPlan{"source_peer", [](Plan& p) { p.programs[0].sources[2].peer = -1; },
                      "receives from rank -1, which is out of range [0, 1]"},
        MalformedPlan{"range",
                      [](Plan& p) {
                        p.programs[0].steps[1].dst.blocks = {1, 2};
                      },
                      "2 blocks from block 1; the plan has 2 blocks"},
        MalformedPlan{"range_huge",
                      [](Plan& p) {
                        p.programs[0].steps[1].dst.blocks = {1, kHuge};
                      },
                      "the plan has 2 blocks"},
        MalformedPlan{"range_empty",
                      [](Plan& p) {
                        p.programs[0].steps[1].dst.blocks = {1, 0};
                      },
                      "0 blocks from block 1"},
        MalformedPlan{"no_scratch", [](Plan& p) { p.programs[0].steps[1].dst.buffer = Buffer::kScratch; },
                      "0 scratch blocks"},
        MalformedPlan{"scratch_wrap",
                      [](Plan& p) {
                        p.shape.blocks.num_scratch_blocks = 4;
                        p.programs[0].steps[1].dst = scratch(1, 2);
                      },
                      "crosses a multiple of 2"},
        MalformedPlan{"other_elements", [](Plan& p) { p.programs[0].sources[1].local = in(1); },
                      "other elements of the vector"},
        MalformedPlan{"input", [](Plan& p) { p.programs[0].steps[1].dst.buffer = Buffer::kInput; },
                      "writes the input"},
        MalformedPlan{"sources", [](Plan& p) { p.programs[0].steps[1].num_sources = INT32_MAX; },
                      "2147483647 sources from number 1 of the 5"},
        MalformedPlan{"no_source", [](Plan& p) { p.programs[0].steps[1].num_sources = 0; }, "has 0 sources"},
        MalformedPlan{"shared_source", [](Plan& p) { p.programs[0].steps[3].first_source = 2; },
                      "shares source 2"},
        MalformedPlan{"send_message", [](Plan& p) { p.programs[0].sources[0] = from(1); },
                      "sends a message instead of a local range"},
        MalformedPlan{"deps", [](Plan& p) { p.programs[0].steps[1].num_deps = 100; },
                      "100 dependencies from"},
        MalformedPlan{"dep_later", [](Plan& p) { p.programs[0].deps[0] = 2; },
                      "comes after step 2; a step can only wait for earlier ones"},
        MalformedPlan{"dep_negative", [](Plan& p) { p.programs[0].deps[0] = -5; }, "comes after step -5"},
        MalformedPlan{"owned",
                      [](Plan& p) {
                        p.programs[0].owned = {{1, kHuge}};
                      },
                      "rank 0 owns 9223372036854775807 blocks"},
        MalformedPlan{"owned_twice",
                      [](Plan& p) {
                        p.programs[0].owned = {{1, 1}, {0, 1}};
                      },
                      "owned ranges must ascend inside blocks 0-1"}),
    [](const auto& test) { return test.param.name; });

TEST(MalformedPlanTest, IsLimitedInValuesAndAccesses) {
  Plan plan = pair_plan();
  EXPECT_TRUE(check(plan, {.max_values = 7}).has(FindingKind::kTooLarge));
  EXPECT_TRUE(check(plan, {.max_accesses = 13}).has(FindingKind::kTooLarge));
  EXPECT_FALSE(check(plan, {.max_values = 8, .max_accesses = 14}).has(FindingKind::kTooLarge));
}

TEST(CheckTest, RejectsTooLargePlansBeforeTheyAreBuilt) {
  const auto why = [](const char* spec, const char* algorithm) {
    return plan::too_large_to_build(**plan::make_builder(parse_topology(spec), {.algorithm = algorithm}));
  };
  EXPECT_EQ(why("bcube:32,1", "hips"), "");
  EXPECT_THAT(why("switch:20000", "hips"), HasSubstr("20000 ranks with 40000 blocks each"));
  EXPECT_THAT(why("switch:7000", "flat-mesh"), HasSubstr("steps (the checker takes at most"));
  // One leader has steps for all others; these have few.
  EXPECT_EQ(why("switch:100000", "flat-ps"), "");
}

TEST(CheckTest, RejectsInvalidOptions) {
  EXPECT_THAT(text_of(check(pair_plan(), {.credits = 0})),
              HasSubstr("invalid number of credits 0 (valid: 1 or more)"));
  EXPECT_THAT(text_of(check(pair_plan(), {.segments = 0})),
              HasSubstr("invalid number of segments 0 (valid: 1 or more)"));
  EXPECT_THAT(text_of(check(pair_plan(), {.count = -1})),
              HasSubstr("invalid number of elements -1 (valid: 0 or more)"));
  EXPECT_TRUE(check(pair_plan(), {.count = INT64_MAX}).has(FindingKind::kTooLarge));
  EXPECT_TRUE(check(pair_plan(), {.count = INT64_MAX / 8}).ok());
}

}  // namespace
}  // namespace hips::tests
