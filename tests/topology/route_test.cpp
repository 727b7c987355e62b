#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include <hips/topology.hpp>

#include "tests/topology/samples.hpp"
#include "topology/walk.hpp"

namespace hips {
namespace {

std::vector<std::string> addresses(const Topology& topology, const std::vector<Hop>& hops) {
  std::vector<std::string> out;
  for (const Hop& hop : hops) out.push_back(topology.address(hop.to));
  return out;
}

TEST(Digits, OfARankStartAtTheInnermostLevel) {
  const Topology topology = parse_topology("bcube:2x4x3");
  EXPECT_EQ(topology.digits(1 + 2 * (3 + 4 * 2)), (std::vector<std::int64_t>{1, 3, 2}));
  for (const std::string& spec : tests::sample_specs()) {
    const Topology each = parse_topology(spec);
    for (Rank rank = 0; rank < each.num_ranks(); ++rank) {
      const auto digits = each.digits(rank);
      ASSERT_EQ(each.rank_of(digits), rank) << spec;
      for (std::int32_t l = 0; l < static_cast<std::int32_t>(digits.size()); ++l) {
        ASSERT_EQ(each.digit(rank, l), digits[l]) << spec;
        auto changed = digits;
        changed[l] = each.levels[l].radix - 1;
        ASSERT_EQ(each.with_digit(rank, l, changed[l]), each.rank_of(changed)) << spec;
      }
    }
  }
}

TEST(Address, IsWrittenAsInThePapers) {
  const Topology bcube = parse_topology("bcube:3,1");
  EXPECT_EQ(bcube.address(0), "<00>");
  EXPECT_EQ(bcube.address(1), "<01>");
  EXPECT_EQ(bcube.address(3), "<10>");
  EXPECT_EQ(bcube.address(8), "<22>");
  EXPECT_EQ(parse_topology("bcube:10,5").address(123456), "<123456>");
  EXPECT_EQ(parse_topology("bcube:12x2").address(23), "<1.11>");
  EXPECT_EQ(parse_topology("torus:4x3").address(6), "(2,1)");
  EXPECT_EQ(parse_topology("torus:5").address(4), "(4)");
  EXPECT_EQ(parse_topology("fattree:4").address(15), "<311>");
  EXPECT_EQ(parse_topology("rail:9,2").address(7), "<7>");
  EXPECT_EQ(parse_topology("switch:12").address(11), "<11>");
  EXPECT_EQ(parse_topology("switch:1").address(0), "<0>");
  EXPECT_EQ(parse_topology("bcube:3,1/4").address(4 * 5 + 3), "<12>:3");
  EXPECT_EQ(parse_topology("switch:1/4").address(2), "<0>:2");
}

TEST(Address, IsDifferentForEveryRank) {
  for (const std::string& spec : tests::sample_specs()) {
    const Topology topology = parse_topology(spec);
    std::vector<std::string> all;
    for (Rank rank = 0; rank < topology.num_ranks(); ++rank) all.push_back(topology.address(rank));
    std::sort(all.begin(), all.end());
    EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end()) << spec;
  }
}

TEST(Neighbours, OfABCubeServerShareASwitchWithIt) {
  const Topology topology = parse_topology("bcube:3,1");
  EXPECT_EQ(addresses(topology, topology.neighbours(1)),
            (std::vector<std::string>{"<00>", "<02>", "<11>", "<21>"}));
  const auto hops = topology.neighbours(1);
  EXPECT_EQ(hops[0], (Hop{.from = 1, .to = 0, .out = 0, .in = 0, .level = 0}));
  EXPECT_EQ(hops[3], (Hop{.from = 1, .to = 7, .out = 1, .in = 1, .level = 1}));
}

TEST(Neighbours, OfATorusServerAreAtTheOtherEndsOfItsCables) {
  const Topology topology = parse_topology("torus:4x2");
  const auto hops = topology.neighbours(0);
  ASSERT_EQ(hops.size(), 4u);
  EXPECT_EQ(hops[0], (Hop{.from = 0, .to = 1, .out = 0, .in = 1, .level = 0}));
  EXPECT_EQ(hops[1], (Hop{.from = 0, .to = 3, .out = 1, .in = 0, .level = 0}));
  // A side of 2 has two cables to the same server.
  EXPECT_EQ(hops[2], (Hop{.from = 0, .to = 4, .out = 2, .in = 3, .level = 1}));
  EXPECT_EQ(hops[3], (Hop{.from = 0, .to = 4, .out = 3, .in = 2, .level = 1}));
}

TEST(Neighbours, OfARackAreReachedByEveryRail) {
  const Topology topology = parse_topology("rail:3,2");
  const auto hops = topology.neighbours(1);
  ASSERT_EQ(hops.size(), 4u);
  EXPECT_EQ(hops[1], (Hop{.from = 1, .to = 0, .out = 1, .in = 1, .level = 0}));
  EXPECT_EQ(hops[2], (Hop{.from = 1, .to = 2, .out = 0, .in = 0, .level = 0}));
}

TEST(Neighbours, OnOneServerAreReachedWithoutANic) {
  const Topology topology = parse_topology("switch:2/2");
  const auto hops = topology.neighbours(0);
  ASSERT_EQ(hops.size(), 2u);
  EXPECT_EQ(hops[0], (Hop{.from = 0, .to = 1, .out = kNoRail, .in = kNoRail, .level = 0}));
  EXPECT_EQ(hops[1], (Hop{.from = 0, .to = 2, .out = 0, .in = 0, .level = 1}));
}

TEST(Neighbours, AreMutual) {
  for (const std::string& spec : tests::sample_specs()) {
    const Topology topology = parse_topology(spec);
    for (Rank rank = 0; rank < topology.num_ranks(); ++rank) {
      for (const Hop& hop : topology.neighbours(rank)) {
        const auto back = topology.neighbours(hop.to);
        const Hop wanted{.from = hop.to, .to = hop.from, .out = hop.in, .in = hop.out, .level = hop.level};
        ASSERT_NE(std::find(back.begin(), back.end(), wanted), back.end()) << spec << " " << rank;
      }
    }
  }
}

TEST(Route, RelaysInABCubeFromLevelZeroUpwards) {
  const Topology topology = parse_topology("bcube:3,1");
  EXPECT_EQ(addresses(topology, topology.route(0, 8)), (std::vector<std::string>{"<02>", "<22>"}));
  EXPECT_EQ(topology.route(0, 6).size(), 1u);
  EXPECT_TRUE(topology.route(4, 4).empty());
}

TEST(Route, TakesTheShorterDirectionOfARing) {
  const Topology topology = parse_topology("torus:5x4");
  EXPECT_EQ(addresses(topology, topology.route(0, 4)), (std::vector<std::string>{"(4,0)"}));
  EXPECT_EQ(addresses(topology, topology.route(0, 3)), (std::vector<std::string>{"(4,0)", "(3,0)"}));
  // The opposite server of a side of 4 is equally far in both directions; "+" is taken.
  EXPECT_EQ(addresses(topology, topology.route(0, 10)), (std::vector<std::string>{"(0,1)", "(0,2)"}));
}

TEST(Route, IsOneHopThroughSwitches) {
  for (const char* spec : {"fattree:6", "rail:9,2", "switch:12", "fattree:4/2"}) {
    const Topology topology = parse_topology(spec);
    for (Rank a = 0; a < topology.num_ranks(); ++a) {
      for (Rank b = 0; b < topology.num_ranks(); ++b) {
        ASSERT_EQ(topology.route(a, b).size(), a == b ? 0u : 1u) << spec;
      }
    }
  }
  // The level of a hop in a tree is the highest tier that it reaches.
  EXPECT_EQ(parse_topology("fattree:4").route(0, 1).front().level, 0);
  EXPECT_EQ(parse_topology("fattree:4").route(0, 3).front().level, 1);
  EXPECT_EQ(parse_topology("fattree:4").route(3, 5).front().level, 2);
}

TEST(Route, IsMadeOfHopsBetweenNeighbours) {
  for (const std::string& spec : tests::sample_specs()) {
    const Topology topology = parse_topology(spec);
    if (topology.ranks_per_server > 1 ||
        (!topology.levels.empty() && topology.levels.back().kind == LevelKind::kTree))
      continue;
    for (Rank a = 0; a < topology.num_ranks(); ++a) {
      for (Rank b = 0; b < topology.num_ranks(); ++b) {
        Rank at = a;
        for (const Hop& hop : topology.route(a, b)) {
          ASSERT_EQ(hop.from, at);
          const auto near = topology.neighbours(at);
          ASSERT_NE(std::find(near.begin(), near.end(), hop), near.end()) << spec << " " << a << "->" << b;
          at = hop.to;
        }
        ASSERT_EQ(at, b) << spec;
      }
    }
  }
}

TEST(Route, OfLocalRanksIsThatOfTheirServers) {
  const Topology topology = parse_topology("bcube:3,1/2");
  const Topology servers = parse_topology("bcube:3,1");
  for (Rank a = 0; a < topology.num_ranks(); ++a) {
    for (Rank b = 0; b < topology.num_ranks(); ++b) {
      const auto hops = topology.route(a, b);
      if (a / 2 == b / 2) {
        ASSERT_EQ(hops.size(), a == b ? 0u : 1u);
        for (const Hop& hop : hops) ASSERT_EQ(hop.out, kNoRail);
        continue;
      }
      const auto expected = servers.route(a / 2, b / 2);
      ASSERT_EQ(hops.size(), expected.size());
      for (std::size_t i = 0; i < hops.size(); ++i) {
        ASSERT_EQ(hops[i].to / 2, expected[i].to);
        ASSERT_EQ(hops[i].to % 2, b % 2);
        ASSERT_EQ(hops[i].out, expected[i].out);
        ASSERT_EQ(hops[i].level, expected[i].level + 1);
      }
    }
  }
}

/// The share of ordered pairs of different servers that no switch joins.
double share_without_common_switch(const Topology& topology) {
  // The fabric is symmetric, so the pairs of the first server represent all.
  std::int64_t apart = 0;
  for (Rank b = 1; b < topology.num_ranks(); ++b) apart += topology.route(0, b).size() > 1;
  return static_cast<double>(apart) / (topology.num_ranks() - 1);
}

TEST(Route, RelaysBetweenHalfTheServerPairsOfASmallBCubeAndNearlyAllOfALargeOne) {
  EXPECT_DOUBLE_EQ(share_without_common_switch(parse_topology("bcube:3,1")), 0.5);
  EXPECT_NEAR(share_without_common_switch(parse_topology("bcube:32,1")), 0.94, 0.005);
}

TEST(Diameter, IsTheLongestOfAllRoutes) {
  for (const std::string& spec : tests::sample_specs()) {
    const Topology topology = parse_topology(spec);
    if (topology.ranks_per_server > 1) continue;
    std::size_t longest = 0;
    for (Rank a = 0; a < topology.num_ranks(); ++a) {
      for (Rank b = 0; b < topology.num_ranks(); ++b)
        longest = std::max(longest, topology.route(a, b).size());
    }
    EXPECT_EQ(topology::diameter_hops(topology), static_cast<std::int64_t>(longest)) << spec;
  }
}

std::vector<Hop> walked(const Topology& topology, Rank a, Rank b, Rail out) {
  std::vector<Hop> hops;
  topology::walk(topology, a, b, out, [&](const Hop& hop) { hops.push_back(hop); });
  return hops;
}

TEST(Neighbours, AtTheEdgeOfAMeshHaveOneCableLess) {
  const Topology topology = parse_topology("mesh:3x2");
  EXPECT_EQ(addresses(topology, topology.neighbours(0)), (std::vector<std::string>{"(1,0)", "(0,1)"}));
  EXPECT_EQ(addresses(topology, topology.neighbours(4)),
            (std::vector<std::string>{"(0,1)", "(2,1)", "(1,0)"}));
  EXPECT_EQ(addresses(topology, topology.route(2, 3)), (std::vector<std::string>{"(1,0)", "(0,0)", "(0,1)"}));
  // A line has no other direction: "-" at the left edge is not connected.
  EXPECT_EQ(addresses(topology, walked(topology, 0, 2, 1)), (std::vector<std::string>{"(1,0)", "(2,0)"}));
}

TEST(Walk, LeavesByTheNamedNic) {
  // The other rail of a rack, the longer direction of a ring, the higher level of a BCube first.
  EXPECT_EQ(walked(parse_topology("rail:4,3"), 0, 2, 2).front().in, 2);
  const Topology torus = parse_topology("torus:5");
  EXPECT_EQ(addresses(torus, walked(torus, 0, 2, 1)), (std::vector<std::string>{"(4)", "(3)", "(2)"}));
  const Topology pair = parse_topology("torus:2");
  EXPECT_EQ(walked(pair, 0, 1, 1), (std::vector<Hop>{{.from = 0, .to = 1, .out = 1, .in = 0, .level = 0}}));
  const Topology bcube = parse_topology("bcube:3,1");
  EXPECT_EQ(addresses(bcube, walked(bcube, 0, 8, 1)), (std::vector<std::string>{"<20>", "<22>"}));
}

TEST(Walk, TakesTheDefaultRouteIfTheNamedNicDoesNotLeadThere) {
  const Topology bcube = parse_topology("bcube:3,1");
  EXPECT_EQ(walked(bcube, 0, 2, 1), bcube.route(0, 2));
  const Topology torus = parse_topology("torus:4x4");
  EXPECT_EQ(walked(torus, 0, 3, 2), torus.route(0, 3));
}

}  // namespace
}  // namespace hips
