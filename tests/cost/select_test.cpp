#include "lib/cost/select.hpp"

#include <gtest/gtest.h>

#include <string>

#include "lib/plan/builder.hpp"

namespace hips::cost {
namespace {

std::int64_t num_sends(const PlanBuilder& builder, Rank rank) {
  std::int64_t sends = 0;
  for (const Step& step : builder.program(rank).steps) sends += step.op == StepOp::kSend ? 1 : 0;
  return sends;
}

TEST(Select, small_vectors_take_fewer_messages_where_every_pair_is_one_hop_apart) {
  for (int ranks = 3; ranks <= 64; ++ranks) {
    const Selection selection = value_or_throw(select(parse_topology("switch:" + std::to_string(ranks))));
    ASSERT_EQ(selection.choices.size(), 2U) << ranks;
    const Selection::Choice& small = selection.choices[0];
    const Selection::Choice& large = selection.choices[1];
    EXPECT_EQ(selection.builder(small).shape().algorithm, "recursive-doubling");
    EXPECT_EQ(selection.builder(large).shape().algorithm, "hips");
    EXPECT_EQ(large.up_to_bytes, UINT64_MAX);
    EXPECT_GE(small.up_to_bytes, 4U);
    EXPECT_LE(small.up_to_bytes, 256U << 10U);
    for (Rank rank = 0; rank < ranks; ++rank) {
      EXPECT_LE(num_sends(selection.builder(small), rank), num_sends(selection.builder(large), rank));
    }
  }
}

TEST(Select, every_size_goes_by_hips_where_another_plan_would_need_relays) {
  for (const char* spec : {"bcube:3,1", "bcube:2x4x3", "torus:3x3", "torus:4x4x2", "bcube:2,3"}) {
    const Selection selection = value_or_throw(select(parse_topology(spec)));
    ASSERT_EQ(selection.choices.size(), 1U) << spec;
    EXPECT_EQ(selection.builder(selection.choices[0]).shape().algorithm, "hips");
    EXPECT_EQ(selection.choices[0].up_to_bytes, UINT64_MAX);
  }
}

TEST(Select, limits_ascend_and_the_last_has_none) {
  for (const char* spec :
       {"switch:1", "switch:2", "rail:8,4", "fattree:4", "leafspine:4,4", "rail:3,2/2", "switch:100"}) {
    const Selection selection = value_or_throw(select(parse_topology(spec)));
    ASSERT_FALSE(selection.choices.empty());
    std::uint64_t last = 0;
    for (const Selection::Choice& choice : selection.choices) {
      EXPECT_GT(choice.up_to_bytes, last) << spec;
      last = choice.up_to_bytes;
    }
    EXPECT_EQ(last, UINT64_MAX);
  }
}

}  // namespace
}  // namespace hips::cost
