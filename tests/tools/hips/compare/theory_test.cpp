#include "tools/hips/compare/theory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "lib/cost/estimate.hpp"
#include "lib/plan/builder.hpp"

namespace hips::compare {
namespace {

using ::testing::HasSubstr;

const TheoryRow& row(const Theory& theory, std::string_view scheme) {
  const auto found =
      std::ranges::find_if(theory.rows, [&](const TheoryRow& row) { return row.scheme.starts_with(scheme); });
  EXPECT_NE(found, theory.rows.end()) << scheme;
  return *found;
}

/// The rows of the table as the reference writes them, in W/B.
TEST(Theory, HasTheClosedForms) {
  for (const std::int64_t n : {2, 3, 4, 5, 8, 32}) {
    for (const std::int64_t K : {1, 2, 3, 4}) {
      const double N = std::pow(n, K), B = 3e9, W = 7e8, alpha = 2e-6;
      for (const std::int64_t P : {std::int64_t{1}, static_cast<std::int64_t>(N)}) {
        const Theory theory = value_or_throw(make_theory(
            {.radix = n, .nics = K, .leaders = P, .bytes = W, .bytes_per_s = B, .hop_seconds = alpha}));
        const auto expect = [&](std::string_view scheme, double steps, double term) {
          const TheoryRow& found = row(theory, scheme);
          EXPECT_EQ(static_cast<double>(found.steps), steps) << scheme;
          EXPECT_NEAR(found.barrier_seconds, term, 1e-12 * term) << scheme;
          EXPECT_NEAR(found.gst_seconds, steps * alpha + term, 1e-12 * term) << scheme;
          EXPECT_LE(found.bandwidth_seconds, found.barrier_seconds * (1 + 1e-12)) << scheme;
        };
        const auto k = static_cast<double>(K), r = static_cast<double>(n);
        expect("flat PS, " + std::to_string(P) + " ded", 2, 2 * N * W / (static_cast<double>(P) * B));
        expect("flat PS, one co-located", 2, 2 * (N - 1) * W / B);
        expect("flat mesh", 2, 2 * (N - 1) * W / (N * B));
        expect("flat ring, 1 NIC", 2 * (N - 1), 2 * (N - 1) * W / (N * B));
        expect("flat ring, all", 2 * (N - 1), 2 * (N - 1) * W / (N * k * B));
        expect("HiPS BCube, mesh", 2 * k, 2 * (N - 1) * W / (N * k * B));
        expect("HiPS BCube, ring", 2 * k * (r - 1), 2 * (N - 1) * W / (N * k * B));
        expect("HiPS BCube, one PS", 2 * k, 2 * (r - 1) * W / B);
        expect("HiPS BCube, one lane", 2 * k, 2 * (N - 1) * W / (N * B));
        expect("HiPS torus, one", 2 * k * (r - 1), 2 * (N - 1) * W / (N * k * B));
        expect("HiPS torus, both", 2 * k * (r - 1), 2 * (N - 1) * W / (N * 2 * k * B));
      }
    }
  }
  const Theory four = value_or_throw(make_theory({.radix = 4, .nics = 2}));
  const Theory eight = value_or_throw(make_theory({.radix = 8, .nics = 1}));
  const auto detour = [](const Theory& theory) {
    return row(theory, "mesh inside").barrier_seconds / row(theory, "HiPS torus, both").barrier_seconds;
  };
  EXPECT_NEAR(detour(four), 1.33, 0.01);
  EXPECT_NEAR(detour(eight), 2.29, 0.01);
}

/// The plans of the schemes, counted from their programs.
TEST(Theory, EqualsTheCostOfPlans) {
  const LevelPattern mesh{Pattern::kMesh, Pattern::kMesh, 0}, ring{Pattern::kRing, Pattern::kRing, 0};
  const LevelPattern ps{Pattern::kPs, Pattern::kPs, 1};
  for (const auto& [n, K] : {std::pair{2, 1}, {3, 1}, {3, 2}, {4, 2}, {5, 2}, {3, 3}, {4, 3}}) {
    const auto servers = static_cast<std::int64_t>(std::pow(n, K));
    const std::string bcube = "bcube:" + std::to_string(n) + "," + std::to_string(K - 1);
    std::string torus = "torus:" + std::to_string(n);
    for (int d = 1; d < K; ++d) torus += "x" + std::to_string(n);
    const std::string single = "switch:" + std::to_string(servers);
    const std::string rack = "rail:" + std::to_string(servers) + "," + std::to_string(K);
    // All blocks are whole elements.
    const std::int64_t count = servers * K * 2 * 50;
    const Theory theory =
        value_or_throw(make_theory({.radix = n, .nics = K, .bytes = static_cast<double>(4 * count)}));
    const auto expect = [&](std::string_view scheme, const std::string& spec, PlanRequest request,
                            bool same_steps = true) {
      const Topology topology = parse_topology(spec);
      const auto builder = value_or_throw(plan::make_builder(topology, request));
      const auto cost = cost::estimate_all(topology, *builder, {.count = count, .element_bytes = 4});
      const TheoryRow& found = row(theory, scheme);
      if (same_steps) {
        EXPECT_EQ(cost.num_steps, found.steps) << scheme << " on " << spec;
      }
      EXPECT_NEAR(cost.barrier_seconds, found.barrier_seconds, 1e-9 * found.barrier_seconds)
          << scheme << " on " << spec;
      const double most = found.bandwidth_seconds * (1 + 1e-9);
      EXPECT_LE(cost.bandwidth_seconds, most) << scheme << " on " << spec;
      if (!found.at_most) {
        EXPECT_NEAR(cost.bandwidth_seconds, found.bandwidth_seconds, 1e-9 * most) << scheme << " on " << spec;
      }
    };
    expect("flat PS, one co-located", single, {.algorithm = "flat-ps"});
    expect("flat mesh", single, {.algorithm = "flat-mesh"});
    expect("flat ring, 1 NIC", single, {.algorithm = "flat-ring"});
    expect("flat ring, all", rack, {.algorithm = "flat-ring"});
    expect("HiPS BCube, mesh", bcube, {.patterns = {mesh}});
    expect("HiPS BCube, ring", bcube, {.patterns = {ring}});
    expect("HiPS BCube, one PS", bcube, {.patterns = {ps}});
    expect("HiPS torus, both", torus, {.patterns = {ring}});
    // The table counts hops of such a mesh, and plans stages.
    if (n > 3) expect("mesh inside", torus, {.patterns = {mesh}}, false);
  }
}

TEST(Theory, RejectsInvalidParameters) {
  const auto refused = [](const TheoryInput& input, std::string_view words) {
    const auto theory = make_theory(input);
    ASSERT_FALSE(theory) << words;
    EXPECT_EQ(theory.error().code, Code::kInvalidArgument);
    EXPECT_THAT(theory.error().message, HasSubstr(std::string(words)));
  };
  refused({.radix = 1}, "--radix: 1 is too small; give 2 or more");
  refused({.nics = 0}, "--nics: 0 is out of range");
  refused({.nics = 31}, "--nics: 31 is out of range");
  refused({.radix = 10, .nics = 10}, "--nics: 10 levels of radix 10 have more than");
  refused({.servers = 10}, "--servers: 10 is not n^K; --radix 3 and --nics 2 give 9");
  refused({.leaders = 10}, "--leaders: 10 is out of range [1, 9]");
  refused({.leaders = 0}, "--leaders: 0");
  refused({.bytes = 0}, "--bytes: 0");
  refused({.bytes_per_s = 0}, "--rate: 0");
  refused({.hop_seconds = -1e-6}, "--latency: -1");
}

TEST(Theory, PrintsThePublishedFigures) {
  const std::string text = theory_text(value_or_throw(make_theory({.radix = 4, .nics = 4})));
  EXPECT_THAT(text, HasSubstr("N = 256 servers"));
  // Four NICs against one: the published 75 %.
  EXPECT_THAT(text, HasSubstr("-75.0 % against flat mesh"));
  EXPECT_THAT(text, HasSubstr("-73 % against flat PS, -75 % against a ring"));
  EXPECT_THAT(text, HasSubstr("-18.7 to -56.4 %"));
}

}  // namespace
}  // namespace hips::compare
