#include <array>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lib/plan/check/check.hpp"
#include "lib/plan/formats/plan_json.hpp"
#include "tests/plan/check_cover.hpp"
#include "tests/plan/check_tiny_plan.hpp"
#include "tests/plan/mutation_operators.hpp"

namespace hips::tests {
namespace {

/// Numbers that a broken file may hold: near those of a plan, and at the ends of the types.
template <typename Int>
Int hostile_number(std::mt19937_64& random) {
  const std::array<Int, 9> numbers = {
      -1, 0, 1, 2, 3, 7, 1000, std::numeric_limits<Int>::max(), std::numeric_limits<Int>::min()};
  return numbers[random() % numbers.size()];
}

void spoil_field(Plan& plan, std::mt19937_64& random) {
  Program& program = plan.programs[random() % plan.programs.size()];
  const auto int32 = [&] { return hostile_number<std::int32_t>(random); };
  const auto int64 = [&] { return hostile_number<std::int64_t>(random); };
  if (program.steps.empty() || program.sources.empty()) return;
  Step& step = program.steps[random() % program.steps.size()];
  Source& source = program.sources[random() % program.sources.size()];
  switch (random() % 24) {
    case 0:
      step.op = static_cast<StepOp>(random() % 4);
      break;
    case 1:
      step.lane = int32();
      break;
    case 2:
      step.stage = int32();
      break;
    case 3:
      step.round = int32();
      break;
    case 4:
      step.peer = int32();
      break;
    case 5:
      step.rail = int32();
      break;
    case 6:
      step.dst.blocks.first = int64();
      break;
    case 7:
      step.dst.blocks.count = int64();
      break;
    case 8:
      step.dst.buffer = static_cast<Buffer>(random() % 4);
      break;
    case 9:
      step.first_source = int32();
      break;
    case 10:
      step.num_sources = int32();
      break;
    case 11:
      step.first_dep = int32();
      break;
    case 12:
      step.num_deps = int32();
      break;
    case 13:
      source.kind = static_cast<Source::Kind>(random() % 3);
      break;
    case 14:
      source.local.blocks.first = int64();
      break;
    case 15:
      source.local.blocks.count = int64();
      break;
    case 16:
      source.peer = int32();
      break;
    case 17:
      source.rail = int32();
      break;
    case 18:
      if (!program.deps.empty()) program.deps[random() % program.deps.size()] = int32();
      break;
    case 19:
      if (!program.owned.empty()) program.owned[0] = {int64(), int64()};
      break;
    case 20:
      plan.shape.blocks.num_blocks = int64();
      break;
    case 21:
      plan.shape.blocks.num_scratch_blocks = int64();
      break;
    case 22:
      plan.shape.blocks.parts[0].blocks = {int64(), int64()};
      break;
    default:
      (random() % 2 == 0 ? plan.shape.blocks.parts[0].begin : plan.shape.blocks.parts[0].end) = {int64(),
                                                                                                 int64()};
      break;
  }
}

TEST(CheckFuzzTest, TheCheckerReportsOnAnyBrokenPlan) {
  std::mt19937_64 random(seed_from_environment());
  std::vector<Plan> plans = {pair_plan()};
  for (const char* spec : {"bcube:2x3", "torus:3", "switch:5"}) {
    for (const plan::Algorithm& algorithm : plan::algorithms()) {
      if (auto plan = build({spec, std::string(algorithm.name)}, parse_topology(spec))) {
        plans.push_back(std::move(*plan));
      }
    }
  }
  int wrong = 0;
  constexpr int kPlans = 2000;
  for (int i = 0; i < kPlans; ++i) {
    Plan plan = plans[random() % plans.size()];
    // Many changes that keep the numbers sound get past the first checks; a field with a hostile number may
    // not.
    for (std::uint64_t changes = random() % 12; changes > 0; --changes) {
      Plan changed = plan;
      if (Mutator(random()).mutate(changed, random() % Mutator::kinds().size())) plan = std::move(changed);
    }
    for (std::uint64_t fields = random() % 3; fields > 0; --fields) spoil_field(plan, random);
    const plan::CheckReport report =
        plan::check(plan, {.segments = static_cast<std::int32_t>(random() % 4 + 1),
                           .credits = static_cast<std::int32_t>(random() % 2 + 1),
                           .max_values = 1 << 20,
                           .max_accesses = 1 << 24});
    wrong += report.ok() ? 0 : 1;
    EXPECT_EQ(report.ok(),
              report.findings.empty() || severity_of(report.findings.front().kind) == plan::Severity::kNote);
  }
  EXPECT_GT(wrong, kPlans / 2);
}

}  // namespace
}  // namespace hips::tests
