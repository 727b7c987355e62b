#include "lib/plan/prune/prune.hpp"

#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lib/plan/builder.hpp"
#include "lib/plan/check/check.hpp"
#include "lib/plan/prunable.hpp"
#include "lib/plan/prune/owners.hpp"
#include "lib/plan/prune/pruned_program.hpp"
#include "tests/exec/plan_cases.hpp"
#include "tests/plan/report_text.hpp"

namespace hips::tests {
namespace {

using exec::testing::Case;
using plan::CheckOptions;

constexpr Collective kPruned[] = {Collective::kBcast,     Collective::kReduce, Collective::kReduceScatter,
                                  Collective::kAllgather, Collective::kGather, Collective::kScatter};

std::unique_ptr<PlanBuilder> builder_of(const Case& one) {
  return value_or_throw(plan::make_builder(parse_topology(one.spec), one.request));
}

/// The number of blocks that all ranks receive.
std::int64_t received_blocks(const Plan& plan) {
  std::int64_t blocks = 0;
  for (const Program& program : plan.programs) {
    for (const Step& step : program.steps)
      if (step.op == StepOp::kSend) blocks += step.dst.blocks.count;
  }
  return blocks;
}

/// The plan without one message: without the send and its source at the receiver, or a copy of this source.
Plan without_message(const Plan& plan, Rank rank, StepId id) {
  Plan left = plan;
  const Step send = plan.programs[rank].steps[id];
  plan::KeptSteps of_sender(left.programs[rank]);
  of_sender.kept[id] = false;
  left.programs[rank] = plan::without_others(left.programs[rank], of_sender, Collective::kReduceScatter);
  Program& receiver = left.programs[send.peer];
  plan::KeptSteps of_receiver(receiver);
  for (std::size_t r = 0; r < receiver.steps.size(); ++r) {
    Step& step = receiver.steps[r];
    if (step.op == StepOp::kSend || step.lane != send.lane || step.stage != send.stage ||
        step.round != send.round)
      continue;
    for (std::int32_t s = step.first_source; s < step.first_source + step.num_sources; ++s) {
      if (receiver.sources[s].kind != Source::Kind::kMessage || receiver.sources[s].peer != rank) continue;
      if (step.num_sources == 1) {
        of_receiver.kept[r] = false;
        break;
      }
      // The sources of a step are consecutive: the last one replaces the removed one.
      std::swap(receiver.sources[s], receiver.sources[step.first_source + step.num_sources - 1]);
      --step.num_sources;
      break;
    }
  }
  receiver = plan::without_others(receiver, of_receiver, Collective::kReduceScatter);
  return left;
}

class PruneTest : public ::testing::TestWithParam<Case> {
 protected:
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

  /// Checks that no message can be left out.
  static void expect_minimal(const Plan& made, Collective collective, Rank root) {
    constexpr std::int64_t kMostMessages = 40;
    std::int64_t messages = 0;
    for (const Program& program : made.programs)
      for (const Step& step : program.steps) messages += step.op == StepOp::kSend ? 1 : 0;
    if (messages > kMostMessages) return;
    for (const Program& program : made.programs) {
      for (StepId id = 0; id < static_cast<StepId>(program.steps.size()); ++id) {
        if (program.steps[id].op != StepOp::kSend) continue;
        const Plan less = without_message(made, program.rank, id);
        EXPECT_FALSE(plan::check(less, {.collective = collective, .root = root}).ok())
            << to_string(collective) << " root " << root << ": not needed: step " << id << " of rank "
            << program.rank;
      }
    }
  }

  Plan plan_ = plan::build_all(*builder_of(GetParam()));
};

TEST_P(PruneTest, ABroadcastSendsEveryBlockToEveryOtherRankOnce) {
  for (Rank root = 0; root < plan_.shape.num_ranks; ++root) {
    const Plan made = value_or_throw(plan::prune(plan_, Collective::kBcast, root));
    prove(made, Collective::kBcast, root);
    EXPECT_EQ(received_blocks(made), (plan_.shape.num_ranks - 1) * plan_.shape.blocks.num_blocks);
  }
}

TEST_P(PruneTest, AReductionSendsOnlyWhatTheRootNeeds) {
  for (Rank root = 0; root < plan_.shape.num_ranks; ++root) {
    const Plan made = value_or_throw(plan::prune(plan_, Collective::kReduce, root));
    prove(made, Collective::kReduce, root);
    expect_minimal(made, Collective::kReduce, root);
  }
}

TEST_P(PruneTest, ReduceScatterAndAllGatherAreTheTwoHalvesOfAnAllreduce) {
  const auto owners = plan::owners(plan_);
  const auto scatter = plan::prune(plan_, Collective::kReduceScatter);
  const auto gather = plan::prune(plan_, Collective::kAllgather);
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
  EXPECT_EQ(received_blocks(*gather), (plan_.shape.num_ranks - 1) * plan_.shape.blocks.num_blocks);
}

TEST_P(PruneTest, AGatherAndAScatterSendOnlyWhatIsNeeded) {
  if (!plan::owners(plan_)) return;  // a plan without sections, as the test before says
  for (Rank root = 0; root < plan_.shape.num_ranks; ++root) {
    for (const Collective collective : {Collective::kGather, Collective::kScatter}) {
      const Plan made = value_or_throw(plan::prune(plan_, collective, root));
      prove(made, collective, root);
      expect_minimal(made, collective, root);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Builders, PruneTest, ::testing::ValuesIn(exec::testing::cases()),
                         exec::testing::name_of);

/// More shapes than in PruneTest, as programs are only compared.
std::vector<Case> compared_cases() {
  std::vector<Case> all = exec::testing::cases();
  for (int ranks = 1; ranks <= 17; ++ranks) {
    for (const char* algorithm :
         {"flat-ps", "flat-mesh", "flat-ring", "recursive-doubling", "recursive-multiplying",
          "halving-doubling", "binomial-tree", "double-tree", "bine", "hips"})
      all.push_back({fmt::format("switch:{}", ranks), {.algorithm = algorithm}});
  }
  for (const int leaders : {2, 3, 5})
    all.push_back({"switch:7", {.algorithm = "flat-ps", .num_leaders = leaders}});
  for (const char* spec : {"torus:8x4", "torus:2x2x2", "torus:4x4/2", "torus:16", "torus:2"})
    all.push_back({spec, {.algorithm = "swing"}});
  for (const char* spec : {"torus:5x3", "torus:3x2/2", "torus:2x2x3", "torus:7"})
    all.push_back({spec, {.algorithm = "bucket"}});
  for (const char* spec : {"mesh:3x4", "mesh:2x2/2", "bcube:3,1[0-4,8]/3", "torus:3x3x3[0-11,14-20]",
                           "bcube:4,1[1-9]", "leafspine:3,4,2[0-4,8]", "fattree:4[0-6,9,15]/2"})
    all.push_back({spec, {.algorithm = "trees"}});
  const LevelPattern patterns[] = {{Pattern::kMesh, Pattern::kMesh, 0},
                                   {Pattern::kRing, Pattern::kRing, 0},
                                   {Pattern::kMesh, Pattern::kRing, 0},
                                   {Pattern::kRing, Pattern::kMesh, 0},
                                   {Pattern::kPs, Pattern::kPs, 2}};
  for (const char* spec :
       {"bcube:2x3x4", "torus:4x3", "torus:5x2/2", "bcube:3,1/2", "torus:6x4", "leafspine:3,4"}) {
    for (const LevelPattern& first : patterns) {
      for (const LevelPattern& second : patterns) {
        std::vector<LevelPattern> of_levels = {first, second};
        if (std::string_view(spec) == "bcube:2x3x4") of_levels.push_back(first);
        all.push_back({spec, {.patterns = of_levels}});
      }
    }
  }
  for (const char* spec : {"bcube:3,1", "torus:4x4", "bcube:2,2/2", "rail:5,3", "torus:3x3x3"}) {
    for (const std::int32_t rings : {1, 2})
      all.push_back({spec, {.algorithm = "flat-ring", .num_rings = rings}});
  }
  return all;
}

class PrunedProgramTest : public ::testing::TestWithParam<Case> {};

TEST_P(PrunedProgramTest, ARankPrunesItsProgramLikeTheWholePlan) {
  const auto builder = builder_of(GetParam());
  ASSERT_NE(dynamic_cast<const plan::PrunableBuilder*>(builder.get()), nullptr);
  const Plan whole = plan::build_all(*builder);
  for (const Collective collective : kPruned) {
    for (Rank root = 0; root < (has_root(collective) ? whole.shape.num_ranks : 1); ++root) {
      const auto expected = plan::prune(whole, collective, root);
      for (Rank rank = 0; rank < whole.shape.num_ranks; ++rank) {
        const auto made = plan::pruned_program(*builder, collective, root, rank);
        ASSERT_EQ(made.has_value(), expected.has_value()) << to_string(collective) << " rank " << rank;
        if (!made) {
          EXPECT_EQ(made.error().code, expected.error().code);
          EXPECT_EQ(made.error().message, expected.error().message);
          break;
        }
        ASSERT_EQ(*made, expected->programs[rank])
            << to_string(collective) << " root " << root << " rank " << rank;
      }
      if (expected) {
        EXPECT_EQ(plan::pruned_shape(builder->shape(), collective, root), expected->shape);
      }
    }
  }
}

TEST_P(PrunedProgramTest, OwnersFollowFromArithmetic) {
  const auto builder = builder_of(GetParam());
  const auto* const prunable = dynamic_cast<const plan::PrunableBuilder*>(builder.get());
  ASSERT_NE(prunable, nullptr);
  for (Rank rank = 0; rank < builder->shape().num_ranks; ++rank)
    EXPECT_EQ(prunable->owned(rank), builder->program(rank).owned) << "rank " << rank;
  const auto computed = plan::owners(*builder), counted = plan::owners(plan::build_all(*builder));
  ASSERT_EQ(computed.has_value(), counted.has_value());
  if (computed) {
    EXPECT_EQ(*computed, *counted);
  } else {
    EXPECT_EQ(computed.error().message, counted.error().message);
  }
}

std::string number_and_name(const ::testing::TestParamInfo<Case>& instance) {
  return fmt::format("{}_{}", instance.index, exec::testing::name_of(instance));
}
INSTANTIATE_TEST_SUITE_P(Builders, PrunedProgramTest, ::testing::ValuesIn(compared_cases()), number_and_name);

/// Counts the programs that are built.
class CountingBuilder final : public plan::PrunableBuilder {
 public:
  explicit CountingBuilder(std::unique_ptr<PlanBuilder> built)
      : built_(std::move(built)), inner_(dynamic_cast<const plan::PrunableBuilder&>(*built_)) {}
  [[nodiscard]] const PlanShape& shape() const override { return inner_.shape(); }
  [[nodiscard]] Program program(Rank rank) const override {
    ++programs;
    return inner_.program(rank);
  }
  [[nodiscard]] std::vector<BlockRange> owned(Rank rank) const override { return inner_.owned(rank); }
  [[nodiscard]] bool kept_in_bcast(const plan::MessageName& message, Rank root) const override {
    ++messages;
    return inner_.kept_in_bcast(message, root);
  }
  [[nodiscard]] bool kept_in_reduce(const plan::MessageName& message, Rank root) const override {
    ++messages;
    return inner_.kept_in_reduce(message, root);
  }

  mutable std::int64_t programs = 0, messages = 0;

 private:
  std::unique_ptr<PlanBuilder> built_;
  const plan::PrunableBuilder& inner_;
};

TEST(PrunedProgram, OfOneRankOf1024IsBuiltWithoutThoseOfTheOthers) {
  for (const auto& [spec, algorithm] :
       std::vector<std::pair<const char*, const char*>>{{"bcube:4,4", "hips"},
                                                        {"switch:1024", "flat-mesh"},
                                                        {"torus:32x32", "hips"},
                                                        {"switch:1024", "recursive-doubling"},
                                                        {"switch:1023", "halving-doubling"},
                                                        {"torus:32x32", "swing"},
                                                        {"switch:1024", "double-tree"},
                                                        {"bcube:32,1", "flat-ring"},
                                                        {"rail:128,8/8", "hips"}}) {
    const CountingBuilder builder(builder_of({spec, {.algorithm = algorithm}}));
    const auto steps =
        static_cast<std::int64_t>(builder.shape().num_ranks > 0 ? builder.program(1000).steps.size() : 0);
    const auto sources = static_cast<std::int64_t>(builder.program(1000).sources.size());
    for (const Collective collective : kPruned) {
      builder.programs = builder.messages = 0;
      const auto made = plan::pruned_program(builder, collective, 3, 1000);
      if (!made && made.error().code == Code::kUnsupported) continue;
      ASSERT_TRUE(made) << made.error().message;
      EXPECT_EQ(builder.programs, 1) << spec << " " << algorithm << " " << to_string(collective);
      // The builder is asked at most twice for each message.
      EXPECT_LE(builder.messages, 2 * (steps + sources));
      EXPECT_LE(static_cast<std::int64_t>(made->steps.size()), steps);
    }
  }
}

TEST(PrunedProgram, OfOneRankOfAMillionIsSmall) {
  const auto builder = builder_of({"bcube:10,5", {}});
  for (const Collective collective : {Collective::kBcast, Collective::kReduce}) {
    const Program made = value_or_throw(plan::pruned_program(*builder, collective, 123456, 654321));
    EXPECT_GT(made.steps.size(), 0U);
    EXPECT_LT(made.steps.size(), 6U * 2U * 2U * 6U * 10U);
  }
}

TEST(PrunedProgram, OfAStoredPlanComesFromTheWholePlan) {
  /// A builder without PrunableBuilder.
  class Opaque final : public PlanBuilder {
   public:
    explicit Opaque(Plan plan) : plan_(std::move(plan)) {}
    [[nodiscard]] const PlanShape& shape() const override { return plan_.shape; }
    [[nodiscard]] Program program(Rank rank) const override {
      return plan_.programs[static_cast<std::size_t>(rank)];
    }

   private:
    Plan plan_;
  };
  const auto builder = builder_of({"bcube:2,1", {}});
  const Opaque opaque(plan::build_all(*builder));
  for (const Collective collective : kPruned) {
    EXPECT_EQ(value_or_throw(plan::pruned_program(opaque, collective, 1, 2)),
              value_or_throw(plan::pruned_program(*builder, collective, 1, 2)));
  }
  EXPECT_EQ(value_or_throw(plan::owners(opaque)), value_or_throw(plan::owners(*builder)));
}

Plan built(const std::string& spec, const std::string& algorithm) {
  return plan::build_all(*builder_of({spec, {.algorithm = algorithm}}));
}

TEST(PruneOf, RecursiveDoublingIsABinomialTree) {
  for (const Rank size : {2, 3, 4, 7, 8, 16}) {
    const Plan plan = built(fmt::format("switch:{}", size), "recursive-doubling");
    for (Rank root = 0; root < size; ++root) {
      for (const Collective collective : {Collective::kBcast, Collective::kReduce}) {
        const Plan made = value_or_throw(plan::prune(plan, collective, root));
        std::size_t messages = 0;
        for (const Program& program : made.programs)
          for (const Step& step : program.steps) messages += step.op == StepOp::kSend ? 1U : 0U;
        // A root outside the power of two sends its vector and gets the result back: one message more.
        const Rank core = static_cast<Rank>(std::bit_floor(static_cast<std::uint32_t>(size)));
        const bool outside = root < 2 * (size - core) && root % 2 == 0;
        const bool one_more = collective == Collective::kReduce && outside;
        EXPECT_EQ(messages, static_cast<std::size_t>(size - 1 + (one_more ? 1 : 0)))
            << to_string(collective) << " of " << size << ", root " << root;
      }
    }
  }
}

TEST(PruneOf, EveryRankOfAHierarchyOwnsASection) {
  for (const char* spec : {"bcube:3,1", "torus:3x3", "bcube:2x4", "switch:5"}) {
    const auto owners = plan::owners(built(spec, "hips"));
    ASSERT_TRUE(owners) << spec << ": " << owners.error().message;
  }
}

TEST(PruneOf, ARootThatIsNotARankIsRejected) {
  const auto builder = builder_of({"switch:3", {}});
  const Plan plan = plan::build_all(*builder);
  for (const Rank root : {-1, 3}) {
    const std::string expected = fmt::format("bcast: root {} is out of range [0, 2]", root);
    const auto made = plan::prune(plan, Collective::kBcast, root);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().message, expected);
    const auto program = plan::pruned_program(*builder, Collective::kBcast, root, 0);
    ASSERT_FALSE(program);
    EXPECT_EQ(program.error().message, expected);
  }
}

TEST(PruneOf, AWrongCopyInAPrunedPlanIsFoundByTheChecker) {
  const Plan plan = built("bcube:2,1", "hips");
  const Plan made = value_or_throw(plan::prune(plan, Collective::kBcast, 1));
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
