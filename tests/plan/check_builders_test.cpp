#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lib/plan/check/check.hpp"
#include "tests/choices.hpp"
#include "tests/plan/check_cover.hpp"
#include "tests/plan/radix_mixes.hpp"
#include "tests/plan/report_text.hpp"

namespace hips::tests {
namespace {

constexpr std::int64_t kMostRanks = 64;

std::vector<std::int64_t> radices_of(const std::string& mix) {
  std::vector<std::int64_t> radices;
  for (std::size_t begin = 0; begin < mix.size(); begin = mix.find_first_of('x', begin) + 1) {
    radices.push_back(std::stoll(mix.substr(begin)));
    if (mix.find_first_of('x', begin) == std::string::npos) break;
  }
  return radices;
}

/// The patterns of a level of some radix: `ps:P` for one leader, two, half of them, all.
std::vector<std::string> patterns_of(std::int64_t radix) {
  std::set<std::string> patterns = {"mesh", "ring", "mesh/ring", "ring/mesh"};
  for (const std::int64_t leaders : {std::int64_t{1}, std::int64_t{2}, (radix + 1) / 2, radix}) {
    patterns.insert(fmt::format("ps:{}", std::min(leaders, radix)));
  }
  return {patterns.begin(), patterns.end()};
}

/// One pattern drawn for each level.
std::string drawn_patterns(const std::string& mix, std::mt19937_64& random) {
  std::string text;
  for (const std::int64_t radix : radices_of(mix)) {
    const std::vector<std::string> patterns = patterns_of(radix);
    text += (text.empty() ? "" : ",") + patterns[random() % patterns.size()];
  }
  return text;
}

void add_hierarchies(const std::string& spec, const std::string& mix, std::mt19937_64& random,
                     std::vector<PlanCase>& cases) {
  const std::vector<std::int64_t> radices = radices_of(mix);
  cases.push_back({spec});
  for (const std::string& patterns : patterns_of(*std::min_element(radices.begin(), radices.end()))) {
    cases.push_back({spec, "hips", patterns});
  }
  if (radices.size() < 2) return;
  for (int i = 0; i < 3; ++i) cases.push_back({spec, "hips", drawn_patterns(mix, random)});
}

void add_flat(const std::string& spec, std::vector<PlanCase>& cases) {
  for (const plan::Algorithm& algorithm : plan::algorithms()) {
    if (algorithm.name != "hips") cases.push_back({spec, std::string(algorithm.name)});
  }
}

/// Every builder on every radix mix up to 64 ranks, with patterns alike on all levels and drawn ones.
std::vector<PlanCase> all_cases(std::mt19937_64& random) {
  std::vector<PlanCase> cases;
  for (const std::string& mix : radix_mixes(kMostRanks)) {
    const std::string torus = "torus:" + mix;
    for (const std::string& spec : {bcube_spec(mix), torus}) {
      add_hierarchies(spec, mix, random, cases);
      add_flat(spec, cases);
    }
    // Several ranks of a server are one more level, the innermost.
    const Topology topology = parse_topology(torus);
    for (const Rank per_server : {2, 3}) {
      if (topology.num_ranks() * per_server > kMostRanks) continue;
      cases.push_back({fmt::format("{}/{}", bcube_spec(mix), per_server)});
      cases.push_back({fmt::format("{}/{}", torus, per_server)});
      add_flat(fmt::format("{}/{}", bcube_spec(mix), per_server), cases);
    }
  }
  for (const char* spec : {"fattree:4", "fattree:6", "leafspine:2,2", "leafspine:4,8", "leafspine:5,3,2"}) {
    for (const char* patterns :
         {"", "mesh", "ring", "ring/mesh", "ps:1", "ps:2", "mesh,ring,mesh", "ps:1,mesh,ring"}) {
      // Two tiers.
      if (std::string_view(spec).starts_with("leafspine") &&
          std::string_view(patterns).find(",") != std::string_view::npos)
        continue;
      cases.push_back({spec, "hips", patterns});
    }
    add_flat(spec, cases);
  }
  for (std::int64_t n = 1; n <= kMostRanks; ++n) {
    const std::string one_switch = fmt::format("switch:{}", n);
    add_hierarchies(one_switch, std::to_string(n), random, cases);
    add_flat(one_switch, cases);
    for (const std::int64_t leaders : {2, 3, 5}) {
      if (leaders <= n) cases.push_back({one_switch, "flat-ps", "", static_cast<std::int32_t>(leaders)});
    }
    for (const int rails : {1, 2, 3}) {
      const std::string rack = fmt::format("rail:{},{}", n, rails);
      for (const char* patterns : {"", "ring", "ps:1"}) cases.push_back({rack, "hips", patterns});
      add_flat(rack, cases);
    }
    cases.push_back({fmt::format("rail:{},2", n), "flat-ring", "", 0, 1});
    if (2 * n <= kMostRanks) add_flat(fmt::format("rail:{},2/2", n), cases);
  }
  return cases;
}

/// Sizes at which something changes: none, fewer than one per rank, one per rank, with a rest, and many.
std::vector<std::int64_t> counts_of(const Plan& plan) {
  const std::int64_t n = plan.shape.num_ranks;
  return {0, 1, n - 1, n, n + 1, 7919, 1'000'003 * n};
}

/// Bucket and swing need a torus, swing one whose sides are powers of two. All others support every topology
/// of all_cases().
bool is_supported(const PlanCase& plan_case, const Topology& topology) {
  if (plan_case.algorithm != "bucket" && plan_case.algorithm != "swing") return true;
  return std::ranges::all_of(topology.levels, [&](const Level& level) {
    if (level.kind == LevelKind::kNode) return true;
    const bool halves = plan_case.algorithm == "bucket" || (level.radix & (level.radix - 1)) == 0;
    return level.kind == LevelKind::kRing && halves;
  });
}

/// HiPS with all servers leading loads every NIC equally, if no server relays.
bool must_be_balanced(const PlanCase& plan_case, const Plan& plan, const Topology& topology) {
  return plan_case.algorithm == "hips" && plan_case.patterns.find("ps:") == std::string::npos &&
         plan.shape.neighbours_only && !topology.levels.empty() &&
         topology.levels.back().kind != LevelKind::kTree;
}

TEST(CheckBuildersTest, EveryBuilderIsProvedOnEveryRadixMixAndSize) {
  const std::uint64_t seed = seed_from_environment();
  std::mt19937_64 random(seed);
  std::vector<PlanCase> cases = all_cases(random);
  const std::size_t num_all = cases.size();
  if (!test::runs_everything()) {
    const std::size_t num_sampled = test::runs_a_sample() ? 40 : 120;
    std::shuffle(cases.begin(), cases.end(), random);
    cases.resize(num_sampled);
  }
  std::size_t proved = 0, unsupported = 0, checks = 0;
  for (const PlanCase& plan_case : cases) {
    const Topology topology = parse_topology(plan_case.spec);
    std::optional<Plan> plan;
    ASSERT_NO_THROW(plan = build(plan_case, topology)) << plan_case.name();
    ASSERT_EQ(plan.has_value(), is_supported(plan_case, topology)) << plan_case.name();
    if (!plan) {
      ++unsupported;
      continue;
    }
    const auto prove = [&](const plan::CheckOptions& options) {
      const plan::CheckReport report = plan::check(*plan, options);
      ++checks;
      EXPECT_TRUE(report.ok()) << plan_case.name() << ", " << options.count.value_or(-1) << " elements, "
                               << options.segments << " segments" << text_of(report);
      return report;
    };
    for (const std::int64_t count : counts_of(*plan)) prove({.count = count, .topology = &topology});
    const plan::CheckReport report =
        prove({.segments = static_cast<std::int32_t>(random() % 3 + 2), .topology = &topology});
    if (must_be_balanced(plan_case, *plan, topology)) {
      EXPECT_FALSE(report.has(plan::FindingKind::kUnequalLoad)) << plan_case.name() << text_of(report);
    }
    ++proved;
    if (::testing::Test::HasFailure()) break;
  }
  std::printf("proved: %zu plans in %zu checks; %zu that an algorithm does not support; %zu cases in all%s\n",
              proved, checks, unsupported, num_all,
              test::runs_everything() ? "" : " (HIPS_TEST_FULL=1 runs them)");
  EXPECT_EQ(proved + unsupported, cases.size());
}

}  // namespace
}  // namespace hips::tests
