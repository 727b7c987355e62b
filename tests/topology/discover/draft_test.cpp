#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include <fmt/format.h>
#include <hips/topology.hpp>

#include "tests/choices.hpp"
#include "topology/discover/draft.hpp"
#include "topology/families/family.hpp"
#include "topology/formats/topology_file.hpp"
#include "topology/walk.hpp"

namespace hips::topology {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

/// The name of a NIC, which does not change: "node3 dev1".
using Ends = std::set<std::pair<std::string, std::string>>;

/// A simulated job on a topology: what its ranks observe, and which NICs really share a switch or a cable.
struct MadeUp {
  Observation seen;
  Ends joined;
};

/// The connection of a NIC of a whole topology: its switch, or the two ends of its cable.
std::string plug_of(const Topology& topology, std::int64_t server, Rail rail) {
  const std::string name = entry_of(topology.family).switch_name(topology, server, rail);
  if (!name.empty()) return name;
  for (const Hop& hop : topology.neighbours(static_cast<Rank>(server))) {
    if (hop.out != rail) continue;
    const std::string a = fmt::format("{}.{}", hop.from, hop.out), b = fmt::format("{}.{}", hop.to, hop.in);
    return std::min(a, b) + " " + std::max(a, b);
  }
  return "";
}

/// `shuffle_servers`, `shuffle_nics`: ranks and NICs are in a random order instead of that of the family.
MadeUp made_up(const Topology& topology, std::mt19937_64& random, bool shuffle_servers, bool shuffle_nics) {
  const auto servers = static_cast<std::size_t>(topology.num_servers());
  const auto rails = static_cast<std::size_t>(topology.num_rails);
  std::vector<std::size_t> at(servers);
  for (std::size_t i = 0; i < servers; ++i) at[i] = i;
  if (shuffle_servers) std::ranges::shuffle(at, random);
  MadeUp made;
  std::map<std::string, std::string> subnets;
  for (const std::size_t server : at) {
    SeenServer seen{.host = fmt::format("node{}", server)};
    for (std::size_t rail = 0; rail < rails; ++rail) {
      const std::string plug = plug_of(topology, static_cast<std::int64_t>(server), static_cast<Rail>(rail));
      std::string subnet;
      if (!plug.empty())
        subnet = subnets.try_emplace(plug, fmt::format("10.{}.0/24", subnets.size())).first->second;
      seen.nics.push_back({fmt::format("dev{}", rail), subnet.empty() ? "" : "a", subnet, 3.125e9});
    }
    if (shuffle_nics) std::ranges::shuffle(seen.nics, random);
    made.seen.servers.push_back(std::move(seen));
  }
  for (std::size_t a = 0; a < servers; ++a) {
    for (std::size_t b = 0; b < servers; ++b) {
      for (std::size_t i = 0; i < rails && a != b; ++i) {
        for (std::size_t j = 0; j < rails; ++j) {
          const SeenNic &one = made.seen.servers[a].nics[i], &other = made.seen.servers[b].nics[j];
          if (one.subnet.empty() || one.subnet != other.subnet) continue;
          made.seen.paths.push_back({a, i, b, j, true, 1, 0});
          made.joined.insert(
              {made.seen.servers[a].host + " " + one.name, made.seen.servers[b].host + " " + other.name});
        }
      }
    }
  }
  return made;
}

/// The same for a topology file, from its names and the library's neighbours.
Ends joined_in(const TopologyFile& file) {
  Ends joined;
  for (Rank rank = 0; rank < file.topology.num_ranks(); ++rank)
    for (const Hop& hop : file.topology.neighbours(rank))
      joined.insert({file.server_name(hop.from) + " " + file.device(hop.from, hop.out),
                     file.server_name(hop.to) + " " + file.device(hop.to, hop.in)});
  return joined;
}

/// The draft, written and read again.
TopologyFile read_back(const Observation& seen, std::string& text) {
  text = draft_text(value_or_throw(draft_topology(seen)));
  return value_or_throw(parse_topology_file("draft.yaml", text));
}

std::string random_spec(std::mt19937_64& random) {
  const auto one_of = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  const auto sides = [&](int most_dimensions, int most_side) {
    std::string text = std::to_string(one_of(2, most_side));
    for (int d = one_of(1, most_dimensions); d > 1; --d) text += fmt::format("x{}", one_of(2, most_side));
    return text;
  };
  switch (one_of(0, 4)) {
    case 0:
      return "bcube:" + sides(3, 4) + fmt::format("x{}", one_of(2, 5));
    case 1:
      return "torus:" + sides(3, 5);
    case 2:
      return "mesh:" + sides(3, 4);
    case 3:
      return fmt::format("rail:{},{}", one_of(2, 20), one_of(1, 8));
    default:
      return fmt::format("switch:{}", one_of(2, 30));
  }
}

TEST(Draft, OfAnObservedFamilyIsThatFamilyExceptForNames) {
  std::mt19937_64 random(test::seed());
  for (int i = 0; i < 150; ++i) {
    const std::string spec = random_spec(random);
    SCOPED_TRACE(spec);
    const Topology topology = parse_topology(spec);
    const bool shuffle_servers = random() % 2 == 0, shuffle_nics = random() % 2 == 0;
    const MadeUp made = made_up(topology, random, shuffle_servers, shuffle_nics);
    std::string text;
    const TopologyFile file = read_back(made.seen, text);
    SCOPED_TRACE(text);
    ASSERT_EQ(joined_in(file), made.joined);
    ASSERT_EQ(file.topology.num_servers(), topology.num_servers());
    ASSERT_THAT(text, Not(HasSubstr("no family")));
    for (const Level& level : file.topology.levels) ASSERT_EQ(level.bandwidth_bytes_per_s, 3.125e9);
    // Without shuffling, servers and NICs keep their order.
    if (shuffle_servers || shuffle_nics) continue;
    ASSERT_EQ(file.server_names.front(), "node0");
    ASSERT_TRUE(file.other_devices.empty() || topology.family == Family::kMesh);
  }
}

TEST(Draft, OfAThousandServersIsFast) {
  std::mt19937_64 random(test::seed());
  for (const char* spec : {"bcube:16,1", "torus:10x10x10"}) {
    SCOPED_TRACE(spec);
    if (test::runs_a_sample() && std::string_view(spec) != "bcube:16,1") continue;
    MadeUp made = made_up(parse_topology(spec), random, true, true);
    std::string text;
    EXPECT_EQ(joined_in(read_back(made.seen, text)), made.joined);
  }
}

/// One NIC each; subnets of `size` servers, `hops` between the subnets of two servers.
template <typename Hops>
Observation routed(std::size_t servers, std::size_t size, Hops hops) {
  Observation seen;
  for (std::size_t i = 0; i < servers; ++i)
    seen.servers.push_back(
        {fmt::format("n{}", i), 1, {{"mlx5_0", "a", fmt::format("10.0.{}.0/24", i / size), 12.5e9}}});
  for (std::size_t a = 0; a < servers; ++a)
    for (std::size_t b = 0; b < servers; ++b)
      if (a != b)
        seen.paths.push_back({a, 0, b, 0, true, a / size == b / size ? 1 : hops(a / size, b / size), 0});
  return seen;
}

TEST(Draft, DistinguishesLeafSpineAndFatTreeByHops) {
  std::string text;
  EXPECT_EQ(read_back(routed(12, 3, [](auto, auto) { return 3; }), text).topology.spec, "leafspine:4,3");
  EXPECT_THAT(text,
              HasSubstr("  count: 7  # guessed: tiers above the switches of the subnets are not visible\n"));
  const auto by_pod = [](std::size_t a, std::size_t b) { return a / 2 == b / 2 ? 3 : 5; };
  EXPECT_EQ(read_back(routed(16, 2, by_pod), text).topology.spec, "fattree:4");
  // Pods of another size are no Fat-Tree, and leaves of unequal size no leaf-spine.
  EXPECT_EQ(read_back(routed(8, 2, by_pod), text).topology.spec, "leafspine:4,2");
  Observation uneven = routed(8, 3, [](auto, auto) { return 3; });
  EXPECT_EQ(read_back(uneven, text).topology.spec, "switch:8");
  EXPECT_THAT(text, HasSubstr("# guessed: NICs of one number reach each other through routers"));
}

/// `servers` servers with `rails` NICs, all of one number in one subnet.
Observation rack(std::size_t servers, std::size_t rails) {
  Observation seen;
  for (std::size_t server = 0; server < servers; ++server) {
    seen.servers.push_back({fmt::format("n{}", server), 1, {}});
    for (std::size_t rail = 0; rail < rails; ++rail)
      seen.servers.back().nics.push_back(
          {fmt::format("eth{}", rail), "a", fmt::format("10.0.{}.0/24", rail), 12.5e9});
  }
  return seen;
}

TEST(Draft, MarksGuessedValues) {
  std::string text;
  Observation seen = rack(3, 2);
  EXPECT_EQ(read_back(seen, text).topology.spec, "rail:3,2");
  EXPECT_THAT(
      text, HasSubstr("shape: \"rail:3,2\"  # guessed: by the subnets alone; connectivity was not observed"));
  EXPECT_THAT(text, HasSubstr("rate: 100Gb, latency: 1us}  # guessed: latency, not measured"));
  for (SeenServer& server : seen.servers)
    for (SeenNic& nic : server.nics) nic.bandwidth_bytes_per_s = 0;
  seen.servers[1].ranks = 2;
  (void)read_back(seen, text);
  EXPECT_THAT(text, HasSubstr("# guessed: rate, unknown to the system; latency"));
  EXPECT_THAT(text, HasSubstr("ranks-per-server: 1  # guessed: servers had 1 to 2 ranks"));
}

TEST(Draft, HasTheMeasuredLatencyOfEachLevel) {
  std::mt19937_64 random(test::seed());
  MadeUp made = made_up(parse_topology("bcube:3,1"), random, false, false);
  for (SeenPath& way : made.seen.paths) way.latency_ns = way.a_nic == 0 ? 1503 : 2400;
  std::string text;
  const TopologyFile file = read_back(made.seen, text);
  EXPECT_EQ(file.topology.levels[0].latency_ns, 1500);
  EXPECT_EQ(file.topology.levels[1].latency_ns, 2400);
  EXPECT_THAT(text, HasSubstr("rate: 25Gb, latency: 1.5us}  # seen: latency, half a round trip\n"));
}

TEST(Draft, ListsSlowDeadAndMissingNics) {
  Observation seen = rack(4, 2);
  seen.servers[1].nics[0].bandwidth_bytes_per_s = 1.25e9;
  seen.servers[2].nics.pop_back();
  for (std::size_t a = 0; a < 4; ++a)
    for (std::size_t b = 0; b < 4; ++b)
      if (a != b) seen.paths.push_back({a, 0, b, 0, a != 3 && b != 3, 1, 0});
  std::string text;
  const TopologyFile file = read_back(seen, text);
  EXPECT_EQ(topology_shape(file.topology), "rail:4,2");
  EXPECT_THAT(text, HasSubstr("  - {server: n1, nic: 0, rate: 10Gb}  # seen: rate reported by the system\n"));
  EXPECT_THAT(text, HasSubstr("server: n2, nic: 1, rate: 100Gb, state: down}  # seen: this NIC is missing"));
  EXPECT_THAT(text, HasSubstr("server: n3, nic: 0, rate: 100Gb, state: down}  # seen: it reaches no NIC"));
  EXPECT_EQ(file.topology.overrides.size(), 3U);
}

TEST(Draft, ListsACableThatIsFasterThanMost) {
  std::mt19937_64 random(1);
  Observation seen = made_up(parse_topology("torus:6"), random, false, false).seen;
  const SeenPath path = seen.paths.front();
  seen.servers[path.a].nics[path.a_nic].bandwidth_bytes_per_s = 6.25e9;
  seen.servers[path.b].nics[path.b_nic].bandwidth_bytes_per_s = 6.25e9;
  std::string text;
  const TopologyFile file = read_back(seen, text);
  ASSERT_EQ(file.topology.overrides.size(), 1U);
  EXPECT_DOUBLE_EQ(file.topology.overrides.front().bandwidth_bytes_per_s, 6.25e9);
}

TEST(Draft, OfMoreNicsThanAFileHasIsOneOfTheFirst) {
  Observation seen = rack(4, 70);
  seen.servers[2].nics.pop_back();
  std::string text;
  EXPECT_EQ(topology_shape(read_back(seen, text).topology), "rail:4,64");
}

/// A simulated job on only some of the servers.
MadeUp some_of(const MadeUp& whole, const std::vector<std::size_t>& servers) {
  MadeUp part;
  std::map<std::size_t, std::size_t> number;
  std::set<std::string> hosts;
  for (const std::size_t server : servers) {
    number[server] = number.size();
    part.seen.servers.push_back(whole.seen.servers[server]);
    hosts.insert(whole.seen.servers[server].host);
  }
  for (SeenPath way : whole.seen.paths) {
    if (!number.contains(way.a) || !number.contains(way.b)) continue;
    way.a = number[way.a];
    way.b = number[way.b];
    part.seen.paths.push_back(way);
  }
  const auto host = [](const std::string& end) { return end.substr(0, end.find(' ')); };
  for (const auto& [a, b] : whole.joined)
    if (hosts.contains(host(a)) && hosts.contains(host(b))) part.joined.insert({a, b});
  return part;
}

bool fall_apart(const MadeUp& made) {
  std::set<std::size_t> reached{0};
  for (std::size_t before = 0; before < reached.size();) {
    before = reached.size();
    for (const SeenPath& way : made.seen.paths)
      if (reached.contains(way.a)) reached.insert(way.b);
  }
  return reached.size() < made.seen.servers.size();
}

TEST(Draft, OfAPartOfABCubeIsThatPart) {
  std::mt19937_64 random(test::seed());
  std::string text;
  const MadeUp nine = made_up(parse_topology("bcube:3,1"), random, false, false);
  EXPECT_EQ(read_back(some_of(nine, {0, 1, 2, 3, 4, 5, 7}).seen, text).topology.spec,
            "bcube:3,1[0-5,7]@25Gb");
  EXPECT_THAT(text, HasSubstr("  # guessed: the smallest that has these servers"));
  for (int i = 0; i < 60; ++i) {
    const MadeUp whole = made_up(parse_topology(i % 2 == 0 ? "bcube:4,1" : "bcube:3,2"), random, true, false);
    std::vector<std::size_t> servers(whole.seen.servers.size());
    for (std::size_t s = 0; s < servers.size(); ++s) servers[s] = s;
    std::ranges::shuffle(servers, random);
    servers.resize(servers.size() / 2 + random() % (servers.size() / 2));
    const MadeUp part = some_of(whole, servers);
    const TopologyFile file = read_back(part.seen, text);
    // Servers that are not connected, or too few of three levels, are ambiguous; otherwise the draft is
    // exact.
    if (text.find("no family") == std::string::npos) {
      ASSERT_EQ(joined_in(file), part.joined) << text;
    } else {
      ASSERT_TRUE(i % 2 == 1 || fall_apart(part)) << text;
    }
  }
}

TEST(Draft, LeavesOutAManagementNetwork) {
  std::mt19937_64 random(test::seed());
  MadeUp made = made_up(parse_topology("bcube:3,1"), random, false, false);
  for (SeenServer& server : made.seen.servers)
    server.nics.insert(server.nics.begin(), {"eth0", "a", "192.168.0.0/16", 0.125e9});
  for (SeenPath& way : made.seen.paths) ++way.a_nic, ++way.b_nic;
  std::string text;
  const TopologyFile file = read_back(made.seen, text);
  EXPECT_EQ(file.topology.spec, "bcube:3,1@25Gb");
  EXPECT_THAT(file.devices, ElementsAre("dev0", "dev1"));
  EXPECT_THAT(text, HasSubstr("# Note: left out: 192.168.0.0/16, which joins all servers"));
}

TEST(Draft, SeparatesPlacesThatUseTheSameSubnetByConnectivity) {
  // A ring of four, all of whose cables have the same private subnet.
  Observation seen;
  for (int i = 0; i < 4; ++i)
    seen.servers.push_back(
        {fmt::format("n{}", i), 1, {{"eth0", "a", "192.168.1.0/24", 0}, {"eth1", "a", "192.168.1.0/24", 0}}});
  for (std::size_t a = 0; a < 4; ++a)
    for (std::size_t b = 0; b < 4; ++b)
      for (std::size_t i = 0; i < 2 && a != b; ++i)
        for (std::size_t j = 0; j < 2; ++j) {
          const bool cable = (i == 0 && j == 1 && b == (a + 1) % 4) || (i == 1 && j == 0 && a == (b + 1) % 4);
          seen.paths.push_back({a, i, b, j, cable, 1, 0});
        }
  std::string text;
  EXPECT_EQ(read_back(seen, text).topology.spec, "torus:4");
  EXPECT_THAT(text, HasSubstr("count: 0  # guessed: assuming that subnets of two NICs are cables\n"));
  // With NICs in any order, two other families match.
  std::swap(seen.servers[2].nics[0], seen.servers[2].nics[1]);
  for (SeenPath& way : seen.paths) {
    if (way.a == 2) way.a_nic = 1 - way.a_nic;
    if (way.b == 2) way.b_nic = 1 - way.b_nic;
  }
  EXPECT_EQ(read_back(seen, text).topology.spec, "torus:4");
  EXPECT_THAT(text, HasSubstr("; mesh:2x2, bcube:2,1 has the same wiring\n"));
}

TEST(Draft, OfAnUnknownWiringSaysSoAndIsAReadableFile) {
  // Two islands.
  Observation seen = rack(6, 1);
  for (std::size_t i = 3; i < 6; ++i) seen.servers[i].nics[0].subnet = "10.9.9.0/24";
  std::string text;
  EXPECT_EQ(read_back(seen, text).topology.spec, "switch:6");
  EXPECT_THAT(text, HasSubstr("shape: \"switch:6\"  # guessed: no family matches these 2 subnets"));
  EXPECT_FALSE(value_or_throw(draft_topology(seen)).fits);
}

TEST(Draft, OfAnyObservationIsAReadableFile) {
  std::mt19937_64 random(test::seed());
  for (int i = 0; i < 300; ++i) {
    Observation seen;
    const std::size_t servers = 1 + random() % 9;
    for (std::size_t s = 0; s < servers; ++s) {
      seen.servers.push_back(
          {random() % 8 == 0 ? "twin" : fmt::format("n{}", s), 1 + std::int32_t(random() % 2), {}});
      for (std::size_t nics = random() % 5 + (s == 0 ? 1 : 0); nics > 0; --nics)
        seen.servers.back().nics.push_back({fmt::format("e: \"{}\n#", nics), "a",
                                            random() % 4 == 0 ? "" : fmt::format("s{}", random() % 3),
                                            double(random() % 3) * 1.25e9});
    }
    for (std::size_t w = random() % 40; w > 0; --w) {
      const std::size_t a = random() % servers, b = random() % servers;
      if (a == b || seen.servers[a].nics.empty() || seen.servers[b].nics.empty()) continue;
      seen.paths.push_back({a, random() % seen.servers[a].nics.size(), b,
                            random() % seen.servers[b].nics.size(), random() % 2 == 0,
                            std::int32_t(random() % 4), double(random() % 3) * 2e9});
    }
    std::string text;
    const TopologyFile file = read_back(seen, text);
    ASSERT_EQ(file.topology.num_servers(), Rank(servers)) << text;
  }
}

TEST(Draft, WithoutServersOrNicsIsRejected) {
  EXPECT_THAT(draft_topology({}).error().message, HasSubstr("no server was observed"));
  EXPECT_THAT(draft_topology({{{"node7", 1, {}}}, {}}).error().message,
              MatchesRegex("discover: node7 has no NIC with an address; .*HIPS_SOCKET_IFNAME"));
}

}  // namespace
}  // namespace hips::topology
