// Parts of fabrics, and fabrics with slow or dead links: every plan is proved and compared with the bound.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lib/cost/estimate.hpp"
#include "lib/plan/builder.hpp"
#include "lib/plan/check/check.hpp"
#include "tests/choices.hpp"
#include "tests/processor_time.hpp"
#include "topology/formats/part.hpp"
#include "topology/link_rates.hpp"
#include "topology/tiers.hpp"

namespace hips::cost {
namespace {

/// `count` of the servers 0 to `all` - 1, in the notation of specs.
std::string some_of(std::int64_t all, std::int64_t count, std::mt19937_64& random) {
  std::vector<std::int64_t> servers(static_cast<std::size_t>(all));
  std::iota(servers.begin(), servers.end(), std::int64_t{0});
  std::shuffle(servers.begin(), servers.end(), random);
  servers.resize(static_cast<std::size_t>(count));
  std::sort(servers.begin(), servers.end());
  return topology::part_text(servers);
}

void expect_proven(const Topology& topology, const PlanBuilder& builder, const std::string& name) {
  const Plan plan = plan::build_all(builder);
  for (const std::int64_t count : {std::int64_t{1'000'003}, std::int64_t{plan.shape.num_ranks - 1}}) {
    const plan::CheckReport report = plan::check(plan, {.count = count, .topology = &topology});
    ASSERT_TRUE(report.ok()) << name << ", " << count << " elements: " << report.findings.front().text;
  }
}

double ratio_of(const Topology& topology, const PlanBuilder& builder) {
  return estimate_all(topology, builder, {.count = 1 << 22}).ratio;
}

struct Ratio {
  double ratio = 0;
  std::string name;
};

void print(const char* what, std::vector<Ratio>& ratios) {
  std::ranges::sort(ratios, {}, &Ratio::ratio);
  const auto at = [&](double share) {
    return ratios[static_cast<std::size_t>(share * static_cast<double>(ratios.size() - 1))].ratio;
  };
  std::printf("%s: %zu plans; ratio to the bound: median %.3f, 90th percentile %.3f, worst %.3f\n", what,
              ratios.size(), at(0.5), at(0.9), ratios.back().ratio);
  for (std::size_t i = 0; i < 3 && i < ratios.size(); ++i) {
    const Ratio& bad = ratios[ratios.size() - 1 - i];
    std::printf("  %.3f %s\n", bad.ratio, bad.name.c_str());
  }
}

TEST(Partial, RandomServersOfEveryFamilyHaveAProvedPlanNearTheBound) {
  // A fixed seed, so that every run has the figures of docs/topologies.md; HIPS_TEST_FULL adds others.
  std::mt19937_64 random(test::runs_everything() ? test::seed() : 20180812);
  const std::vector<std::string> wholes = {
      "bcube:4,1", "bcube:3,2",       "bcube:8,1",        "torus:4x4",        "torus:3x3x3", "fattree:4",
      "fattree:6", "leafspine:6,6,2", "leafspine:12,4,1", "leafspine:4,16,4", "rail:9,2"};
  const std::size_t wanted = test::runs_a_sample() ? 12 : 200;
  std::vector<Ratio> ratios;
  std::size_t apart = 0;
  while (ratios.size() < wanted) {
    const std::string& whole = wholes[random() % wholes.size()];
    const std::int64_t all = parse_topology(whole).num_servers();
    const auto count = static_cast<std::int64_t>(2 + random() % static_cast<std::uint64_t>(all - 2));
    const std::string spec =
        fmt::format("{}[{}]{}", whole, some_of(all, count, random), random() % 5 == 0 ? "/2" : "");
    const Topology topology = parse_topology(spec);
    ASSERT_EQ(topology.spec, spec);
    const auto builder = plan::make_builder(topology, {});
    if (!builder) {
      // Servers that only others could join by relaying: the error names them.
      EXPECT_THAT(builder.error().message, ::testing::HasSubstr("are not connected"));
      ++apart;
      continue;
    }
    expect_proven(topology, **builder, spec);
    const double ratio = ratio_of(topology, **builder);
    EXPECT_GE(ratio, 1 - 1e-3) << spec << " beats its bound";
    ratios.push_back({ratio, spec});
    if (HasFatalFailure()) return;
  }
  std::printf("%zu draws fell apart\n", apart);
  print("parts", ratios);
  EXPECT_LE(ratios[(ratios.size() - 1) * 9 / 10].ratio, 2.0);
}

TEST(Partial, ComponentsAreNamed) {
  for (const std::string spec : {"bcube:3,1[0,1,5,8]", "bcube:3,1[0,1,5,8]/2"}) {
    const auto builder = plan::make_builder(parse_topology(spec), {});
    ASSERT_FALSE(builder);
    EXPECT_THAT(builder.error().message, ::testing::HasSubstr("2 components, {<00>, <01>}, {<12>, <22>}"));
  }
  // Any two servers of a tree of switches reach each other.
  EXPECT_TRUE(plan::make_builder(parse_topology("leafspine:4,4[0,15]"), {}));
}

TEST(Partial, ATreeThatDeadCablesSplitHasNoPlan) {
  const auto with_dead = [](const std::string& spec,
                            const std::vector<std::pair<std::string, std::string>>& cables) {
    Topology topology = parse_topology(spec);
    for (const auto& [lower, upper] : cables)
      topology.overrides.push_back(
          {.lower = lower, .upper = upper, .bandwidth_bytes_per_s = 1e9, .up = false});
    return topology;
  };
  const std::pair<std::string, std::string> left{"pod 0 edge 0", "pod 0 aggregation 0"};
  const std::pair<std::string, std::string> right{"pod 0 edge 0", "pod 0 aggregation 1"};
  const Topology split = with_dead("fattree:4", {left, right});
  const Topology whole = with_dead("fattree:4", {left});
  for (const plan::Algorithm& algorithm : plan::algorithms()) {
    const auto builder = plan::make_builder(split, {.algorithm = std::string(algorithm.name)});
    ASSERT_FALSE(builder) << algorithm.name;
    EXPECT_THAT(builder.error().message, ::testing::HasSubstr("2 components, {<000>, <001>}, {"))
        << algorithm.name;
  }
  const auto builder = plan::make_builder(whole, {});
  ASSERT_TRUE(builder) << builder.error().message;
  EXPECT_TRUE(std::isfinite(ratio_of(whole, **builder)));
}

/// A fabric with slow and dead links.
Topology degraded(const std::string& spec, std::mt19937_64& random, int num_slow, int num_down) {
  Topology topology = parse_topology(spec);
  const auto servers = static_cast<std::uint64_t>(topology.num_servers());
  for (int i = 0; i < num_slow + num_down; ++i) {
    LinkOverride link;
    link.server = static_cast<std::int64_t>(random() % servers);
    link.rail = static_cast<Rail>(random() % static_cast<std::uint64_t>(topology.num_rails));
    link.up = i < num_slow;
    link.bandwidth_bytes_per_s = kDefaultBandwidthBytesPerS / static_cast<double>(1 << (random() % 4 + 1));
    const auto same = [&](const LinkOverride& other) {
      return other.server == link.server && other.rail == link.rail;
    };
    if (std::ranges::none_of(topology.overrides, same)) topology.overrides.push_back(link);
  }
  return topology;
}

TEST(Partial, PlansForSlowAndDeadLinksReachTheBound) {
  std::mt19937_64 random(test::runs_everything() ? test::seed() : 20181122);
  std::vector<Ratio> ratios;
  const std::size_t wanted = test::runs_a_sample() ? 8 : 60;
  while (ratios.size() < wanted) {
    for (const std::string spec :
         {"bcube:3,1", "bcube:4,1", "torus:4x4", "rail:8,4", "torus:3x3x3", "bcube:8,1"}) {
      const int slow = static_cast<int>(random() % 4), down = static_cast<int>(random() % 3);
      const Topology topology = degraded(spec, random, slow + (down == 0 ? 1 : 0), down);
      const auto builder = plan::make_builder(topology, {});
      if (!builder) {
        // Both links of one server are dead.
        EXPECT_THAT(builder.error().message, ::testing::HasSubstr("are not connected"));
        continue;
      }
      const std::string name = fmt::format("{}, {} slow and {} dead", spec, slow, down);
      expect_proven(topology, **builder, name);
      const double ratio = ratio_of(topology, **builder);
      EXPECT_GE(ratio, 1 - 1e-3) << name << " beats its bound";
      ratios.push_back({ratio, name});
      if (HasFatalFailure()) return;
    }
  }
  print("degraded", ratios);
  EXPECT_LE(ratios.back().ratio, 1.15);
}

TEST(Partial, TheWorstKnownFabricsStayBelowTheLimit) {
  // Found with a thousand seeds of the draws above. Fabrics with 1.26 and 1.52 dropped small shares at the
  // expense of all others, or needed a cut into more than two parts. Those with up to 1.17 needed the
  // partitions by cost.
  struct Link {
    std::int64_t server;
    Rail rail;
    int slower;  ///< 0: down
  };
  const std::vector<std::pair<std::string, std::vector<Link>>> worst = {
      {"bcube:3,1", {{4, 0, 2}, {0, 1, 0}, {2, 1, 0}}},  // NIC 0 of <01> carries all of <00> and <02>
      {"bcube:3,1", {{0, 1, 16}, {1, 0, 16}, {7, 1, 0}, {3, 0, 0}}},
      {"bcube:3,1",
       {{0, 0, 0}, {1, 1, 0}, {8, 0, 16}}},  // <01> is behind <02>, which shares a switch with <22>
      {"bcube:4,1", {{1, 1, 8}, {14, 0, 8}, {7, 1, 16}, {6, 1, 0}, {4, 1, 0}}},
      // A cable of a torus, named by its "-" end.
      {"torus:4x4", {{13, 3, 4}, {4, 0, 16}, {2, 1, 8}, {6, 1, 0}, {10, 1, 0}}},
  };
  std::vector<Ratio> ratios;
  for (const auto& [spec, links] : worst) {
    Topology topology = parse_topology(spec);
    for (const Link& link : links) {
      topology.overrides.push_back(
          {link.server, link.rail, "", "",
           link.slower == 0 ? 0.0 : kDefaultBandwidthBytesPerS / static_cast<double>(link.slower),
           link.slower > 0});
    }
    const auto builder = value_or_throw(plan::make_builder(topology, {}));
    expect_proven(topology, *builder, spec);
    ratios.push_back({ratio_of(topology, *builder), spec});
    EXPECT_GE(ratios.back().ratio, 1 - 1e-3) << spec << " beats its bound";
    EXPECT_LE(ratios.back().ratio, 1.15) << spec;
  }
  print("worst known", ratios);
}

TEST(Partial, ACableWithTwoOverridesHasTheSmallerRate) {
  const auto slow = [](std::int64_t server, Rail rail, int times) {
    return LinkOverride{server, rail, "", "", kDefaultBandwidthBytesPerS / times, true};
  };
  // NIC 2 of <11> and NIC 3 of <12> are the ends of one cable of a torus.
  for (const auto& both :
       {std::vector{slow(5, 2, 4), slow(9, 3, 2)}, std::vector{slow(9, 3, 2), slow(5, 2, 4)}}) {
    Topology topology = parse_topology("torus:4x4");
    topology.overrides = both;
    const topology::LinkRates rates(topology, topology::tiers(topology));
    EXPECT_DOUBLE_EQ(rates.nic(5, 2), kDefaultBandwidthBytesPerS / 4);
    EXPECT_DOUBLE_EQ(rates.nic(9, 3), kDefaultBandwidthBytesPerS / 4);
    const auto builder = value_or_throw(plan::make_builder(topology, {}));
    EXPECT_GE(ratio_of(topology, *builder), 1 - 1e-3);
  }
}

TEST(Partial, PlansOfMeshesReachTheRateOfTheirCables) {
  // The edges have fewer cables, so lanes by dimension would not use the middle fully. Nash-Williams: the
  // number of disjoint trees is that of all cables divided by the cables of one tree.
  std::vector<Ratio> ratios;
  for (const std::string spec : {"mesh:2", "mesh:7", "mesh:2x2", "mesh:3x3", "mesh:3x5", "mesh:4x4",
                                 "mesh:2x9", "mesh:3x3x3", "mesh:4x3x2/2", "mesh:8x8", "mesh:5x5@25Gb"}) {
    const Topology topology = parse_topology(spec);
    const auto builder = value_or_throw(plan::make_builder(topology, {}));
    expect_proven(topology, *builder, spec);
    ratios.push_back({ratio_of(topology, *builder), spec});
    EXPECT_GE(ratios.back().ratio, 1 - 1e-3) << spec << " beats its bound";
    EXPECT_LE(ratios.back().ratio, 1.06) << spec;
    // The closed form equals the maximum flows.
    Topology slow = topology;
    slow.overrides = {{0, 0, "", "", topology.levels.back().bandwidth_bytes_per_s, true}};
    EXPECT_NEAR(bound(topology).seconds(1), bound(slow).seconds(1), bound(slow).seconds(1) * 1e-9) << spec;
  }
  print("meshes", ratios);
}

TEST(Partial, AThousandServersArePlannedInSeconds) {
  std::mt19937_64 random(7);
  const std::string spec =
      fmt::format("bcube:32,1[{}]", some_of(1024, test::runs_a_sample() ? 100 : 900, random));
  const auto begin = test::processor_time();
  const auto builder = plan::make_builder(parse_topology(spec), {});
  ASSERT_TRUE(builder) << builder.error().message;
  const double seconds = std::chrono::duration<double>(test::processor_time() - begin).count();
  std::printf("%s: %.2f s\n", (*builder)->shape().description.c_str(), seconds);
  EXPECT_LT(seconds, 20);
  const auto many = plan::make_builder(parse_topology("bcube:32,2[0-2000]"), {});
  ASSERT_FALSE(many);
  EXPECT_THAT(many.error().message, ::testing::HasSubstr("up to 1024"));
}

}  // namespace
}  // namespace hips::cost
