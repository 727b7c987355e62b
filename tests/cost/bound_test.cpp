#include "lib/cost/bound.hpp"
#include "tests/processor_time.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <random>

namespace hips::cost {
namespace {

constexpr double kRate = kDefaultBandwidthBytesPerS;

/// Seconds per byte in units of 1/rate.
double relative(const Topology& topology) {
  return bound(topology).cut().seconds_per_byte * kRate;
}

/// A BCube whose levels have these rates; only ratios matter, so they are small numbers.
Topology with_rates(const std::string& spec, const std::vector<double>& rates) {
  Topology topology = parse_topology(spec);
  for (std::size_t l = 0; l < rates.size(); ++l) topology.levels[l].bandwidth_bytes_per_s = rates[l];
  return topology;
}

TEST(Bound, OfEqualServersIsThatOfASingleServer) {
  EXPECT_DOUBLE_EQ(relative(parse_topology("bcube:3,1")), 2.0 * 8 / (9 * 2));
  EXPECT_DOUBLE_EQ(relative(parse_topology("bcube:2x4x3")), 2.0 * 23 / (24 * 3));
  EXPECT_DOUBLE_EQ(relative(parse_topology("torus:4x4x4")), 2.0 * 63 / (64 * 6));
  EXPECT_DOUBLE_EQ(relative(parse_topology("rail:9,2")), 2.0 * 8 / (9 * 2));
  EXPECT_DOUBLE_EQ(relative(parse_topology("switch:8")), 2.0 * 7 / 8);
  EXPECT_EQ(bound(parse_topology("bcube:3,1")).cut().name, "single servers");
}

TEST(Bound, OfAFatTreeIncludesEdgeSwitchesAndPods) {
  const Bound result = bound(parse_topology("fattree:4"));
  ASSERT_EQ(result.cuts.size(), 3u);
  EXPECT_EQ(result.cuts[1].name, "edge switches");
  EXPECT_EQ(result.cuts[2].name, "pods");
  // W(1 - 2/k^2) per phase out of an edge switch of k/2 NICs, W(1 - 1/k) out of a pod of k^2/4.
  EXPECT_DOUBLE_EQ(result.cuts[0].seconds_per_byte * kRate, 2 * 15.0 / 16);
  EXPECT_DOUBLE_EQ(result.cuts[1].seconds_per_byte * kRate, 2 * (1 - 2.0 / 16) / 2);
  EXPECT_DOUBLE_EQ(result.cuts[2].seconds_per_byte * kRate, 2 * (1 - 1.0 / 4) / 4);
  EXPECT_EQ(result.largest, 0u);
}

TEST(Bound, OfALeafSpineIncludesItsCablesUpwards) {
  // The 4 servers of a leaf share one cable; their data is reduced below the leaf first.
  const Bound result = bound(parse_topology("leafspine:12,4,1"));
  ASSERT_EQ(result.cuts.size(), 2u);
  EXPECT_EQ(result.cuts[1].name, "leaf switches");
  EXPECT_DOUBLE_EQ(result.cuts[1].seconds_per_byte * kRate, 2 * 11.0 / 12);
  EXPECT_DOUBLE_EQ(result.cuts[0].seconds_per_byte * kRate, 2 * 47.0 / 48);
  EXPECT_EQ(result.cut().name, "single servers");
}

TEST(Bound, OfUnequalLevelsIsTheLargestCutOverAllSetsOfLevels) {
  // T / W: the largest 2 (prod n_l - 1) / (N * sum B_l) over all sets of levels l.
  EXPECT_NEAR(bound(with_rates("bcube:3,1", {10, 5})).cut().seconds_per_byte, 16.0 / 135, 1e-15);
  EXPECT_NEAR(bound(with_rates("bcube:3,1", {10, 1})).cut().seconds_per_byte, 4.0 / 9, 1e-15);
  EXPECT_NEAR(bound(with_rates("bcube:3,2", {10, 5, 2.5})).cut().seconds_per_byte, 104.0 / 945, 1e-15);
  EXPECT_NEAR(bound(with_rates("bcube:4,2", {10, 5, 1})).cut().seconds_per_byte, 63.0 / 512, 1e-15);
}

TEST(Bound, NamesTheLargestCut) {
  const Bound result = bound(with_rates("bcube:3,1", {10, 1}));
  ASSERT_EQ(result.cuts.size(), 2u);
  EXPECT_EQ(result.largest, 1u);
  EXPECT_EQ(result.cut().name, "servers equal in level 1");
  EXPECT_EQ(result.cut().num_parts, 3);
  EXPECT_DOUBLE_EQ(result.cut().part_bandwidth_bytes_per_s, 3);
  // Single servers alone would give the bound 16/99, which no plan reaches.
  EXPECT_NEAR(result.cuts[0].seconds_per_byte, 16.0 / 99, 1e-15);
}

TEST(Bound, CountsServersRatherThanRanks) {
  EXPECT_DOUBLE_EQ(relative(parse_topology("bcube:3,1/4")), relative(parse_topology("bcube:3,1")));
  EXPECT_DOUBLE_EQ(relative(parse_topology("fattree:4/2")), relative(parse_topology("fattree:4")));
}

TEST(Bound, NamesServersRatherThanRanks) {
  for (const std::string spec : {"bcube:3,1", "bcube:3,1/2"}) {
    Topology topology = parse_topology(spec);
    topology.overrides = {{4, 0, "", "", kRate / 100, true}, {4, 1, "", "", kRate / 100, true}};
    EXPECT_EQ(bound(topology).cut().name, "server <11> and the others") << spec;
  }
}

TEST(Bound, OfOneServerIsZero) {
  EXPECT_EQ(bound(parse_topology("switch:1")).seconds(1e9), 0);
  EXPECT_EQ(bound(parse_topology("rail:1,4/8")).seconds(1e9), 0);
}

TEST(Bound, IsTheLargestOverAllSubsetsOfLevels) {
  const char* given = std::getenv("HIPS_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::cout << "HIPS_SEED=" << seed << "\n";
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 300; ++trial) {
    std::string spec = "bcube:1";
    const std::size_t num_levels = 1 + random() % 7;
    for (std::size_t l = 0; l < num_levels; ++l) spec += "x" + std::to_string(2 + random() % 3);
    Topology topology = parse_topology(spec);
    for (Level& level : topology.levels) level.bandwidth_bytes_per_s = static_cast<double>(1 + random() % 4);
    double largest = 0;
    for (std::size_t set = 1; set < (std::size_t{1} << num_levels); ++set) {
      double parts = 1, bandwidth = 0;
      for (std::size_t l = 0; l < num_levels; ++l) {
        if ((set >> l & 1) == 0) continue;
        parts *= static_cast<double>(topology.levels[l].radix);
        bandwidth += topology.levels[l].bandwidth_bytes_per_s;
      }
      largest = std::max(largest, 2 * (parts - 1) / (topology.num_servers() * bandwidth));
    }
    ASSERT_NEAR(bound(topology).cut().seconds_per_byte / largest, 1, 1e-12) << spec;
  }
}

TEST(Bound, CostsNoMoreForAMillionServersOrThirtyLevels) {
  const auto begin = test::processor_time();
  for (int i = 0; i < 100; ++i) {
    EXPECT_DOUBLE_EQ(relative(parse_topology("bcube:10,5")), 2 * 999999.0 / (1e6 * 6));
    EXPECT_GT(relative(parse_topology("bcube:2,29")), 0);
    EXPECT_GT(relative(parse_topology("fattree:2000")), 0);
  }
  EXPECT_LT(test::processor_time() - begin, std::chrono::seconds(3));
}

}  // namespace
}  // namespace hips::cost
