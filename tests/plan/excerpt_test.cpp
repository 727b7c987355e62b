#include "lib/plan/excerpt.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lib/plan/builder.hpp"
#include "lib/plan/check.hpp"
#include "tests/exec/plan_cases.hpp"
#include "tests/plan/report_text.hpp"

namespace hips::tests {
namespace {

using exec::testing::Case;
using plan::CheckOptions;

class ExcerptTest : public ::testing::TestWithParam<Case> {
 protected:
  Plan plan_ = plan::build_all(
      *value_or_throw(plan::make_builder(parse_topology(GetParam().spec), GetParam().request)));

  void prove(const Plan& made, Collective collective, Rank root) {
    for (const auto& [count, segments] : std::vector<std::pair<std::optional<std::int64_t>, std::int32_t>>{
             {std::nullopt, 1}, {std::nullopt, 3}, {1, 1}, {7, 1}}) {
      const CheckOptions options{
          .collective = collective, .root = root, .count = count, .segments = segments};
      const plan::CheckReport report = plan::check(made, options);
      EXPECT_TRUE(report.ok()) << to_string(collective) << " root " << root << ", " << count.value_or(-1)
                               << " elements, " << segments << " segments" << text_of(report);
    }
  }

  /// Blocks that all ranks receive.
  static std::int64_t received_blocks(const Plan& plan) {
    std::int64_t blocks = 0;
    for (const Program& program : plan.programs) {
      for (const Step& step : program.steps)
        if (step.op == StepOp::kSend) blocks += step.dst.blocks.count;
    }
    return blocks;
  }
};

TEST_P(ExcerptTest, broadcasts_bring_every_block_to_every_other_rank_once) {
  for (Rank root = 0; root < plan_.shape.num_ranks; ++root) {
    const Plan made = value_or_throw(plan::excerpt(plan_, Collective::kBcast, root));
    prove(made, Collective::kBcast, root);
    // A rank gets what it must have; what it only hands on to others on a way of several hops is more.
    EXPECT_GE(received_blocks(made), (plan_.shape.num_ranks - 1) * plan_.shape.blocks.num_blocks);
    EXPECT_LE(received_blocks(made), received_blocks(plan_));
  }
}

TEST_P(ExcerptTest, reductions_bring_every_contribution_to_the_root_once) {
  for (Rank root = 0; root < plan_.shape.num_ranks; ++root) {
    const Plan made = value_or_throw(plan::excerpt(plan_, Collective::kReduce, root));
    prove(made, Collective::kReduce, root);
    EXPECT_LE(received_blocks(made), received_blocks(plan_));
  }
}

TEST_P(ExcerptTest, sections_are_the_two_halves_of_an_allreduce) {
  const auto owners = plan::owners(plan_);
  const auto scatter = plan::excerpt(plan_, Collective::kReduceScatter);
  const auto gather = plan::excerpt(plan_, Collective::kAllgather);
  EXPECT_EQ(scatter.has_value(), owners.has_value());
  EXPECT_EQ(gather.has_value(), owners.has_value());
  if (!owners) {
    EXPECT_EQ(scatter.error().code, Code::kUnsupported);
    EXPECT_NE(scatter.error().message.find(plan_.shape.algorithm), std::string::npos);
    return;
  }
  prove(*scatter, Collective::kReduceScatter, 0);
  prove(*gather, Collective::kAllgather, 0);
  EXPECT_EQ(received_blocks(*scatter) + received_blocks(*gather), received_blocks(plan_));
}

INSTANTIATE_TEST_SUITE_P(Builders, ExcerptTest, ::testing::ValuesIn(exec::testing::cases()),
                         exec::testing::name_of);

Plan built(const std::string& spec, const std::string& algorithm) {
  return plan::build_all(*value_or_throw(plan::make_builder(parse_topology(spec), {.algorithm = algorithm})));
}

TEST(ExcerptOf, recursive_doubling_is_a_binomial_tree) {
  for (const Rank size : {2, 3, 4, 7, 8, 16}) {
    const Plan plan = built(fmt::format("switch:{}", size), "recursive-doubling");
    for (Rank root = 0; root < size; ++root) {
      for (const Collective collective : {Collective::kBcast, Collective::kReduce}) {
        const Plan made = value_or_throw(plan::excerpt(plan, collective, root));
        std::size_t messages = 0;
        for (const Program& program : made.programs)
          for (const Step& step : program.steps) messages += step.op == StepOp::kSend ? 1U : 0U;
        // A root beyond the power of two hands in its vector and gets the result back: one more.
        const bool beyond = collective == Collective::kReduce && (size & (size - 1)) != 0;
        EXPECT_GE(messages, static_cast<std::size_t>(size - 1)) << to_string(collective) << " of " << size;
        EXPECT_LE(messages, static_cast<std::size_t>(beyond ? size : size - 1))
            << to_string(collective) << " of " << size;
      }
    }
  }
}

TEST(ExcerptOf, hierarchies_have_every_rank_own_a_section) {
  for (const char* spec : {"bcube:3,1", "torus:3x3", "bcube:2x4", "switch:5"}) {
    const auto owners = plan::owners(built(spec, "hips"));
    ASSERT_TRUE(owners) << spec << ": " << owners.error().message;
  }
}

TEST(ExcerptOf, a_root_that_is_no_rank_is_refused) {
  const Plan plan = built("switch:3", "hips");
  for (const Rank root : {-1, 3}) {
    const auto made = plan::excerpt(plan, Collective::kBcast, root);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().message, fmt::format("bcast: root {} is none of ranks 0-2", root));
  }
}

TEST(ExcerptOf, an_excerpt_without_a_message_is_found_by_the_checker) {
  // The proof would notice: each send of a broadcast is needed by somebody.
  const Plan plan = built("bcube:2,1", "hips");
  const Plan made = value_or_throw(plan::excerpt(plan, Collective::kBcast, 1));
  for (const Program& program : made.programs) {
    for (std::size_t id = 0; id < program.steps.size(); ++id) {
      if (program.steps[id].op == StepOp::kSend) continue;
      Plan broken = made;
      broken.programs[program.rank].steps[id].dst.blocks.first ^= 1;
      EXPECT_FALSE(plan::check(broken, {.collective = Collective::kBcast, .root = 1}).ok());
    }
  }
}

}  // namespace
}  // namespace hips::tests
