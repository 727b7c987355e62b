#include "topology/parts/occupied.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/choices.hpp"
#include "tests/topology/samples.hpp"
#include "topology/formats/parse.hpp"

namespace hips::topology {
namespace {

std::string part(const std::string& spec, const std::vector<Rank>& ranks) {
  return occupied_part(value_or_throw(parse(spec)), ranks).value_or("none");
}

TEST(Occupied, IsThePartThatTheRanksOccupy) {
  EXPECT_EQ(part("bcube:3,1", {0, 1, 2}), "bcube:3,0");
  EXPECT_EQ(part("bcube:3,1", {1, 4, 7}), "bcube:3,0");
  EXPECT_EQ(part("bcube:3,1", {0, 1, 3, 4}), "bcube:2,1");
  EXPECT_EQ(part("torus:4x3", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}), "torus:4x3");
  EXPECT_EQ(part("torus:4x3", {4, 5, 6, 7}), "torus:4");
  EXPECT_EQ(part("leafspine:4,2", {0, 1, 2, 3}), "leafspine:2,2");
  EXPECT_EQ(part("rail:4,2@25Gb", {1, 3}), "rail:2,2@25Gb");
}

TEST(Occupied, CanBeAnyServersThatReachEachOther) {
  EXPECT_EQ(part("torus:4x3", {0, 1, 2}), "torus:4x3[0-2]");
  EXPECT_EQ(part("bcube:3,1", {0, 1, 3}), "bcube:3,1[0-1,3]");
  EXPECT_EQ(part("bcube:3,1/2", {0, 1, 2, 3, 6, 7}), "bcube:3,1[0-1,3]/2");
  EXPECT_EQ(part("bcube:3,1[3-8]", {0, 1, 2}), "bcube:3,1[3-5]") << "a part of a part";
}

TEST(Occupied, CountsRanksOfServers) {
  EXPECT_EQ(part("bcube:3,1/2", {0, 1, 2, 3, 4, 5}), "bcube:3,0/2");
  EXPECT_EQ(part("bcube:3,1/2", {1, 2, 4}), "bcube:3,0");
  EXPECT_EQ(part("switch:4/3", {0, 2, 3, 4, 9, 11}), "switch:3/2");
  EXPECT_EQ(part("switch:4/3", {0, 2, 3}), "none") << "two on one server, one on the other";
}

TEST(Occupied, IsNoneIfTheRanksFormNoTopology) {
  EXPECT_EQ(part("bcube:3,1", {1, 2, 3}), "none") << "servers that reach each other only through others";
  EXPECT_EQ(part("bcube:3,1", {2, 1, 0}), "none") << "not in the topology's order";
  EXPECT_EQ(part("bcube:3,1", {1, 1}), "none");
  EXPECT_EQ(part("switch:4/3", {3, 4, 5}), "none") << "one server";
  EXPECT_EQ(part("switch:4", {}), "none");
}

TEST(Occupied, HasEachRankOfAnyTopologyAtItsPlace) {
  std::mt19937_64 random(test::seed());
  int found = 0;
  for (int i = 0; i < 400; ++i) {
    const std::string spec = hips::tests::sample_specs()[random() % hips::tests::sample_specs().size()];
    const Topology topology = value_or_throw(parse(spec));
    const auto num_ranks = static_cast<std::uint64_t>(topology.num_ranks());
    if (num_ranks > 4096) continue;
    std::vector<Rank> ranks;
    const std::uint64_t step = 1 + random() % 4, begin = random() % step;
    for (std::uint64_t r = begin; r < num_ranks; r += step)
      if (random() % 8 != 0 || step < 3) ranks.push_back(static_cast<Rank>(r));
    const auto spec_of_part = occupied_part(topology, ranks);
    if (!spec_of_part) continue;
    ++found;
    const auto made = parse(*spec_of_part);
    ASSERT_TRUE(made) << spec << " " << fmt::format("{}", ranks) << ": " << *spec_of_part;
    EXPECT_EQ(made->num_ranks(), static_cast<Rank>(ranks.size())) << *spec_of_part;
    EXPECT_EQ(made->spec, *spec_of_part);
  }
  EXPECT_GT(found, 20);
}

}  // namespace
}  // namespace hips::topology
