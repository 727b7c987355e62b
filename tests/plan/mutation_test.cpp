#include <array>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lib/plan/check/check.hpp"
#include "tests/plan/brute_force.hpp"
#include "tests/plan/check_cover.hpp"
#include "tests/plan/mutation_operators.hpp"

namespace hips::tests {
namespace {

struct Proven {
  std::string name;
  Plan plan;
};

/// Small plans of every algorithm and pattern. All are proved before they are broken.
std::vector<Proven> proven_plans() {
  std::vector<PlanCase> cases;
  for (const char* spec :
       {"bcube:2,1", "bcube:3,1", "bcube:2x3", "bcube:4x2", "bcube:2,2", "bcube:2,0/2", "bcube:2,1/2"}) {
    for (const char* patterns : {"", "ring", "ring/mesh", "ps:1", "ps:2"})
      cases.push_back({spec, "hips", patterns});
  }
  for (const char* spec : {"torus:3", "torus:4", "torus:2x3", "torus:3x3", "torus:4x2", "torus:2x2x2"}) {
    for (const char* patterns : {"", "mesh", "ps:2"}) cases.push_back({spec, "hips", patterns});
  }
  for (const char* spec : {"switch:1", "switch:2", "switch:3", "switch:5", "switch:6", "switch:7", "switch:8",
                           "rail:4,2", "bcube:3,1", "torus:2x3"}) {
    for (const plan::Algorithm& algorithm : plan::algorithms())
      cases.push_back({spec, std::string(algorithm.name)});
  }
  cases.push_back({"switch:6", "flat-ps", "", 2});
  cases.push_back({"rail:5,2", "flat-ring", "", 0, 1});

  std::vector<Proven> proven;
  for (const PlanCase& plan_case : cases) {
    const Topology topology = parse_topology(plan_case.spec);
    std::optional<Plan> plan = build(plan_case, topology);
    if (!plan) continue;
    EXPECT_TRUE(plan::check(*plan).ok()) << plan_case.name();
    proven.push_back({plan_case.name(), std::move(*plan)});
  }
  return proven;
}

/// The options for running and for checking a mutant.
struct Setting {
  std::int64_t count;
  std::int32_t segments, credits;
};

Setting draw_setting(const Plan& plan, std::mt19937_64& random) {
  const BlockIdx blocks = plan.shape.blocks.num_blocks;
  const std::array<std::int64_t, 5> counts = {blocks, 2 * blocks, 4 * blocks + 1, 7 * blocks + 3, blocks - 1};
  return {counts[random() % counts.size()], static_cast<std::int32_t>(random() % 3 + 1),
          static_cast<std::int32_t>(random() % 2 + 1)};
}

/// The error that brute force finds in a few schedules, in and out of place.
std::string witness(const Plan& plan, const Setting& setting, int schedules, std::mt19937_64& random) {
  for (int i = 0; i < schedules; ++i) {
    for (const bool in_place : {true, false}) {
      std::string problem = brute_force(plan, {.count = setting.count,
                                               .segments = setting.segments,
                                               .credits = setting.credits,
                                               .in_place = in_place,
                                               .seed = random()});
      if (!problem.empty()) return problem + (in_place ? ", in place" : ", out of place");
    }
  }
  return "";
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kNumMutants = 150;
#else
constexpr int kNumMutants = 1000;
#endif
constexpr int kSchedules = 20;

TEST(MutationTest, TheCheckerFindsEveryMutantThatRunsWrong) {
  const std::uint64_t seed = seed_from_environment();
  const std::vector<Proven> proven = proven_plans();
  ASSERT_GT(proven.size(), 50U);
  std::mt19937_64 random(seed);

  struct Tally {
    int mutants = 0, wrong = 0, caught = 0, only_checker = 0, equivalent = 0;
  };
  std::vector<Tally> by_kind(Mutator::kinds().size());
  Tally all;
  while (all.mutants < kNumMutants) {
    const std::uint64_t mutant_seed = random();
    std::mt19937_64 own(mutant_seed);
    const Proven& base = proven[own() % proven.size()];
    const std::size_t kind = own() % by_kind.size();
    Plan mutant = base.plan;
    Mutator mutator(own());
    if (!mutator.mutate(mutant, kind) || mutant == base.plan) continue;

    const Setting setting = draw_setting(mutant, own);
    const std::string problem = witness(mutant, setting, kSchedules, own);
    const plan::CheckReport report = plan::check(
        mutant, {.count = setting.count, .segments = setting.segments, .credits = setting.credits});
    for (Tally* tally : {&all, &by_kind[kind]}) {
      ++tally->mutants;
      tally->wrong += problem.empty() ? 0 : 1;
      tally->caught += !problem.empty() && !report.ok() ? 1 : 0;
      tally->only_checker += problem.empty() && !report.ok() ? 1 : 0;
      tally->equivalent += problem.empty() && report.ok() ? 1 : 0;
    }
    EXPECT_TRUE(problem.empty() || !report.ok())
        << "mutant " << mutant_seed << " of " << base.name << ": " << Mutator::kinds()[kind] << " at "
        << mutator.where() << "; brute force: " << problem << " (" << setting.count << " elements, "
        << setting.segments << " segments, " << setting.credits << " credits), the checker finds nothing";
  }

  std::string table = fmt::format("{:<46}{:>8}{:>7}{:>8}{:>14}{:>12}\n", "mutants", "", "wrong", "caught",
                                  "checker only", "harmless");
  const auto add_row = [&](const std::string& name, const Tally& tally) {
    table += fmt::format("{:<46}{:>8}{:>7}{:>8}{:>14}{:>12}\n", name, tally.mutants, tally.wrong,
                         tally.caught, tally.only_checker, tally.equivalent);
  };
  for (std::size_t kind = 0; kind < by_kind.size(); ++kind) add_row(Mutator::kinds()[kind], by_kind[kind]);
  add_row("all", all);
  std::printf("%s", table.c_str());
  EXPECT_EQ(all.wrong, all.caught);
  EXPECT_GT(all.wrong, all.mutants / 2) << "most changes must have an effect";
}

TEST(MutationTest, BruteForceFindsNoErrorInProvedPlans) {
  std::mt19937_64 random(seed_from_environment());
  for (const Proven& base : proven_plans()) {
    for (int i = 0; i < 4; ++i) {
      const Setting setting = draw_setting(base.plan, random);
      EXPECT_EQ(witness(base.plan, setting, 2, random), "")
          << base.name << ", " << setting.count << " elements, " << setting.segments << " segments, "
          << setting.credits << " credits";
    }
  }
}

}  // namespace
}  // namespace hips::tests
