#include "topology/wiring/recognise.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/cost/estimate.hpp"
#include "lib/plan/builder.hpp"
#include "lib/plan/check/check.hpp"
#include "tests/choices.hpp"
#include "tests/topology/shuffled_cabling.hpp"
#include "topology/formats/topology_file.hpp"
#include "topology/parts/restrict.hpp"

namespace hips::topology {
namespace {

using testing::Contains;
using testing::HasSubstr;

std::uint64_t seed_of_run() {
  const char* given = std::getenv("HIPS_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::cout << "HIPS_SEED=" << seed << "\n";
  return seed;
}

/// What is missing according to a result.
std::size_t missing_of(const Topology& topology) {
  std::size_t missing = static_cast<std::size_t>(topology.num_whole_servers() - topology.num_servers());
  for (const LinkOverride& link : topology.overrides) missing += link.up ? 0 : 1;
  return missing;
}

/// Numbers of servers and cables of which two topologies are alike, whatever the order of their levels.
std::vector<std::int64_t> shape_of(const Topology& topology) {
  std::vector<std::int64_t> shape{static_cast<std::int64_t>(topology.family), topology.num_whole_servers(),
                                  topology.num_switches};
  for (const Level& level : topology.levels) shape.push_back(level.radix);
  std::sort(shape.begin() + 3, shape.end());
  return shape;
}

/// Its servers and switches.
Cabling without_cables(const Graph& graph) {
  Cabling cabling;
  for (const GraphNode& node : graph.nodes)
    cabling.nodes.push_back(
        {.name = node.is_switch ? "sw" + std::to_string(node.id) : "n" + std::to_string(node.id),
         .kind = node.is_switch ? CabledNode::Kind::kSwitch : CabledNode::Kind::kServer});
  return cabling;
}

/// A family without some servers, and some links of its graph, by their names such as "<0>:0 to leaf 0".
Cabling without(const std::string& spec, const std::set<std::string>& gone) {
  const Topology topology = parse_topology(spec);
  const Graph graph = topology.graph();
  Cabling cabling = without_cables(graph);
  std::size_t found = 0;
  for (const GraphNode& node : graph.nodes) found += gone.contains(node.name) ? 1 : 0;
  for (const GraphLink& link : graph.links) {
    const auto is_gone = [&](std::int64_t node) {
      return gone.contains(graph.nodes[static_cast<std::size_t>(node)].name);
    };
    const bool listed = gone.contains(link_words(graph, link));
    found += listed ? 1 : 0;
    if (listed || is_gone(link.a) || is_gone(link.b)) continue;
    cabling.cables.push_back({.a = {static_cast<std::size_t>(link.a), ""},
                              .b = {static_cast<std::size_t>(link.b), ""},
                              .bandwidth_bytes_per_s = link.bandwidth_bytes_per_s});
  }
  EXPECT_EQ(found, gone.size()) << spec;
  return cabling;
}

TEST(Recognition, FindsSmallFamiliesThatLoseWhatTellsTheirPlaces) {
  const std::vector<std::pair<std::string, std::set<std::string>>> cases = {
      // An aggregation switch without a core, without a leaf, and with one core only.
      {"fattree:4", {"pod 0 aggregation 0 to core 0", "pod 0 aggregation 0 to core 1"}},
      {"fattree:4", {"pod 0 edge 0 to pod 0 aggregation 0", "pod 0 edge 1 to pod 0 aggregation 0"}},
      {"fattree:4",
       {"pod 0 edge 0 to pod 0 aggregation 0", "pod 0 edge 1 to pod 0 aggregation 0",
        "pod 0 aggregation 0 to core 1"}},
      // A core with one pod only.
      {"fattree:4",
       {"pod 2 aggregation 1 to core 2", "pod 1 aggregation 1 to core 2", "pod 3 aggregation 1 to core 2"}},
      // An aggregation switch below which only a leaf without servers is left.
      {"fattree:4", {"<110>", "<111>", "pod 1 edge 0 to pod 1 aggregation 0"}},
      // A pod in two parts.
      {"fattree:4", {"pod 3 edge 1 to pod 3 aggregation 1", "pod 3 edge 0 to pod 3 aggregation 0"}},
      // A mesh none of whose corners has all its cables.
      {"mesh:3x5", {"(1,0)", "(1,4)"}},
      {"mesh:2x6", {"(0,0):0 to (1,0):1", "(0,5):0 to (1,5):1"}},
      // Each switch of level 1 with two servers of three.
      {"bcube:3,1",
       {"<00>:1 to level 1 switch 0", "<02>:1 to level 1 switch 2", "<11>:1 to level 1 switch 1"}},
      {"bcube:3,1", {"<01>", "<12>", "<20>"}},
      // Servers with two switches of their own.
      {"bcube:2x4x2", {"<101>", "<000>"}},
      {"bcube:2x3x2", {"<001>", "<011>", "<110>"}},
  };
  for (const auto& [spec, gone] : cases) {
    const auto found = topology_of("cables", without(spec, gone));
    ASSERT_TRUE(found) << spec << ": " << found.error().message;
    EXPECT_EQ(shape_of(found->topology), shape_of(parse_topology(spec)))
        << spec << ": " << found->topology.name;
    EXPECT_EQ(missing_of(found->topology), gone.size()) << spec << ": " << found->notes.back();
  }
}

/// Prints the time; a search that grew faster than the servers would run into the test's limit.
void expect_found(const std::string& spec) {
  std::mt19937_64 random(7);
  CablingShuffle shuffle(random);
  const Cabling cabling = shuffle.run(parse_topology(spec), {.servers_missing = 1, .cables_missing = 2});
  const auto begin = std::chrono::steady_clock::now();
  const auto found = topology_of("cables", cabling);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  ASSERT_TRUE(found) << spec << ": " << found.error().message;
  std::cout << spec << ": " << found->topology.name << ", " << seconds << " s\n";
  EXPECT_EQ(found->topology.family, parse_topology(spec).family) << found->topology.spec;
}

TEST(Recognition, FindsFamiliesOfAThousandServers) {
  const std::vector<const char*> specs = {
      "switch:1024", "rail:1024,8", "leafspine:32,32", "fattree:16",      "bcube:32,1", "bcube:10,2",
      "bcube:2,9",   "torus:32x32", "torus:8x8x16",    "torus:4x4x4x4x4", "mesh:32x32", "mesh:10x10x10"};
  for (const char* spec : test::or_every_nth(specs, 4)) expect_found(spec);
}

TEST(Recognition, FindsFamiliesOfTenThousandServers) {
  const std::vector<const char*> specs = {"rail:10000,8",   "leafspine:100,100", "fattree:34",
                                          "bcube:100,1",    "bcube:21,2",        "torus:100x100",
                                          "torus:20x20x25", "mesh:100x100",      "mesh:20x20x25"};
  for (const char* spec : test::or_every_nth(specs, 9)) expect_found(spec);
}

/// Servers, switches and cables by name; all servers' cables before those between switches need no order.
Cabling cabling_of(std::size_t servers, std::size_t switches,
                   const std::vector<std::pair<std::string, std::string>>& cables) {
  Cabling cabling;
  std::map<std::string, std::size_t> number;
  for (std::size_t i = 0; i < servers + switches; ++i) {
    const bool is_server = i < servers;
    const std::string name = is_server ? "n" + std::to_string(i) : "s" + std::to_string(i - servers);
    number[name] = i;
    cabling.nodes.push_back(
        {.name = name, .kind = is_server ? CabledNode::Kind::kServer : CabledNode::Kind::kSwitch});
  }
  for (const auto& [a, b] : cables) {
    Cable cable{.a = {number.at(a), ""}, .b = {number.at(b), ""}};
    cable.bandwidth_bytes_per_s = kDefaultBandwidthBytesPerS;
    cabling.cables.push_back(cable);
  }
  return cabling;
}

/// Proves every plan that can be made, and returns the time of `hips` over the bound.
double prove_plans(const Topology& topology) {
  for (const char* name : {"hips", "flat-ring", "recursive-doubling", "halving-doubling", "flat-mesh"}) {
    const auto builder = plan::make_builder(topology, {.algorithm = name});
    if (!builder) {
      EXPECT_EQ(builder.error().code, Code::kUnsupported) << name << ": " << builder.error().message;
      continue;
    }
    const auto report = plan::check(plan::build_all(**builder), {.topology = &topology});
    EXPECT_TRUE(report.ok()) << topology.name << " " << name << ": "
                             << (report.findings.empty() ? "" : report.findings.front().text);
    EXPECT_GE(cost::estimate_all(topology, **builder, {.count = 1 << 16}).ratio, 0.99)
        << topology.name << " " << name;
  }
  const auto hips = plan::make_builder(topology, {});
  return hips ? cost::estimate_all(topology, **hips, {.count = 1 << 20}).ratio : 0;
}

TEST(Graph, KeepsAnUnevenTreeOfThreeTiersAndPlansAtTheBound) {
  // Two leaves below a spine, one leaf and a login node directly below the core.
  const auto found = topology_of("cables", cabling_of(8, 5,
                                                      {{"n0", "s0"},
                                                       {"n1", "s0"},
                                                       {"n2", "s0"},
                                                       {"n3", "s1"},
                                                       {"n4", "s1"},
                                                       {"n5", "s2"},
                                                       {"n6", "s2"},
                                                       {"n7", "s4"},
                                                       {"s0", "s3"},
                                                       {"s1", "s3"},
                                                       {"s3", "s4"},
                                                       {"s2", "s4"}}));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->topology.family, Family::kGraph);
  EXPECT_FALSE(found->topology.servers_relay);
  EXPECT_THAT(found->notes, Contains(HasSubstr("stay a graph")));
  EXPECT_LE(prove_plans(found->topology), 1.05);
}

TEST(Graph, PlansWhereServersMustRelay) {
  // Two switches, joined by servers n2 and n3 only, and a server behind a cable of n0.
  const auto found = topology_of("cables", cabling_of(7, 2,
                                                      {{"n0", "s0"},
                                                       {"n1", "s0"},
                                                       {"n2", "s0"},
                                                       {"n3", "s0"},
                                                       {"n2", "s1"},
                                                       {"n3", "s1"},
                                                       {"n4", "s1"},
                                                       {"n5", "s1"},
                                                       {"n0", "n6"}}));
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->topology.family, Family::kGraph);
  EXPECT_TRUE(found->topology.servers_relay);
  EXPECT_EQ(found->topology.route(6, 5).size(), 3U);
  EXPECT_LE(prove_plans(found->topology), 1.05);
}

TEST(Graph, IsTheSameAfterItWasWrittenAndRead) {
  std::mt19937_64 random(seed_of_run());
  std::vector<double> ratios;
  double worst = 0;
  std::string worst_text;
  for (int i = 0; i < (test::runs_a_sample() ? 5 : 40); ++i) {
    // A random tree of switches with a few more cables; servers with one or two NICs.
    const std::size_t servers = 3 + random() % 20, switches = 2 + random() % 6;
    std::vector<std::pair<std::string, std::string>> cables;
    const auto any_switch = [&] { return "s" + std::to_string(random() % switches); };
    for (std::size_t s = 1; s < switches; ++s)
      cables.emplace_back("s" + std::to_string(s), "s" + std::to_string(random() % s));
    for (std::size_t server = 0; server < servers; ++server) {
      cables.emplace_back("n" + std::to_string(server), any_switch());
      if (random() % 3 == 0) cables.emplace_back("n" + std::to_string(server), any_switch());
    }
    Cabling cabling = cabling_of(servers, switches, cables);
    cabling.cables.back().bandwidth_bytes_per_s /= 4;
    auto found = topology_of("cables", std::move(cabling));
    ASSERT_TRUE(found) << found.error().message;
    if (found->topology.family != Family::kGraph) continue;
    const TopologyFile file = file_of(*found);
    const auto text = topology_file_text(file, true);
    ASSERT_TRUE(text) << text.error().message;
    auto read = parse_topology_file("cables", *text);
    ASSERT_TRUE(read) << read.error().message << "\n" << *text;
    EXPECT_EQ(read->topology.spec.substr(0, 12), "file:cables#");
    EXPECT_EQ(read->server_names, file.server_names);
    EXPECT_EQ(read->told, file.told);
    // The digest is that of the text, which has notes, too.
    read->topology.spec = file.topology.spec;
    EXPECT_EQ(read->topology, file.topology) << *text;
    if (const double ratio = prove_plans(read->topology); ratio > 0) {
      ratios.push_back(ratio);
      if (ratio > worst) worst_text = *text;
      worst = std::max(worst, ratio);
    }
  }
  std::ranges::sort(ratios);
  ASSERT_FALSE(ratios.empty());
  std::cout << ratios.size() << " graphs: time over the bound " << ratios[ratios.size() / 2]
            << " in the median, " << ratios.back() << " at most, of\n"
            << worst_text;
  EXPECT_LE(ratios[ratios.size() / 2], 1.05);
}

TEST(Graph, UsesFastNicsOfAServerThatHasMoreThanItsNeighbours) {
  // The last server has a slow NIC and a fast one; all neighbours in rank order would use NIC 0.
  const auto read = parse_topology_file("g.yaml", R"(hips-topology: 1
shape: graph
servers: {count: 3}
switches: {names: [s0, s1]}
cables:
  - {server: 0, nic: 0, switch: s1}
  - {server: 1, nic: 0, switch: s0}
  - {server: 2, nic: 0, switch: s0, rate: 25Gb}
  - {server: 2, nic: 1, switch: s1}
  - {switches: [s0, s1]}
)");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_LE(prove_plans(read->topology), 1.1);
  const auto ring = plan::make_builder(read->topology, {.algorithm = "flat-ring"});
  ASSERT_TRUE(ring) << ring.error().message;
  EXPECT_LE(cost::estimate_all(read->topology, **ring, {.count = 1 << 20}).ratio, 1.1);
}

TEST(Graph, IsReadAsThePageShowsItAndCutToAJob) {
  const auto read = parse_topology_file("g.yaml", R"(hips-topology: 1
shape: graph
rate: 100Gb
servers: {count: 4, names: [node0, node1, node2, node3]}
switches: {names: [leaf0, leaf1, core]}
cables:
  - {server: node0, nic: 0, switch: leaf0}
  - {server: node1, nic: 0, switch: leaf0}
  - {server: node2, nic: 0, switch: leaf1}
  - {server: node3, nic: 0, switch: core, rate: 25Gb, latency: 2us}
  - {server: node2, nic: 1, to: node3, to-nic: 1}
  - {switches: [leaf0, core], rate: 400Gb}
  - {switches: [leaf1, core], state: down}
)");
  ASSERT_TRUE(read) << read.error().message;
  // The cable to node2's switch is down, so node3 relays for it.
  EXPECT_TRUE(read->topology.servers_relay);
  EXPECT_EQ(read->topology.route(2, 0).size(), 2U);
  EXPECT_LE(prove_plans(read->topology), 1.05);
  const auto job = restrict_to(*read, {.names = {"node3", "node0", "node1"}, .ranks_per_host = 2});
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->topology.num_ranks(), 6);
  EXPECT_FALSE(job->topology.servers_relay);
  EXPECT_THAT(job->server_names, testing::ElementsAre("node0", "node1", "node3"));
  EXPECT_LE(prove_plans(job->topology), 1.05);
}

TEST(Recognition, SaysInWordsWhatIsMissing) {
  const Topology topology = parse_topology("bcube:4,1");
  const Graph graph = topology.graph();
  Cabling cabling = without_cables(graph);
  for (const GraphLink& link : graph.links) {
    if (link.a == 7) continue;
    Cable cable{.a = {static_cast<std::size_t>(link.a), "mlx5_" + std::to_string(link.a_port)},
                .b = {static_cast<std::size_t>(link.b), ""}};
    cable.bandwidth_bytes_per_s = link.a == 5 && link.a_port == 0 ? 12.5e8 : 12.5e9;
    cable.up = link.a != 3 || link.a_port != 1;
    cabling.cables.push_back(cable);
  }
  // A management switch at one of the others.
  cabling.nodes.push_back({.name = "mgmt", .kind = CabledNode::Kind::kSwitch});
  cabling.cables.push_back({.a = {20, ""}, .b = {cabling.nodes.size() - 1, ""}});
  const auto found = topology_of("cables.csv", cabling);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->topology.family, Family::kBCube);
  EXPECT_EQ(found->topology.num_servers(), 15);
  EXPECT_EQ(found->topology.overrides.size(), 2U);
  EXPECT_THAT(found->nodes, testing::SizeIs(15));
  EXPECT_EQ(found->nodes.front(), "n0");
  EXPECT_EQ(found->nodes.back(), "n15");
  EXPECT_THAT(found->notes,
              Contains(HasSubstr("BCube(4,1) without server 7; cable n3:mlx5_1 to sw7 is down; "
                                 "cable n5:mlx5_0 to sw1 (10Gb instead of 100Gb) is at another rate")));
  EXPECT_THAT(found->notes, Contains(HasSubstr("switch \"mgmt\" is on no path between two servers")));
}

TEST(Recognition, DecidesWhichUnknownDevicesAreServers) {
  std::mt19937_64 random(3);
  CablingShuffle shuffle(random);
  for (const char* spec :
       {"switch:9", "leafspine:4,6,2", "fattree:4", "rail:9,4", "bcube:4,1", "torus:4x5", "mesh:4x5"}) {
    const auto found = topology_of("cables", shuffle.run(parse_topology(spec), {.kinds_known = false}));
    ASSERT_TRUE(found) << spec << ": " << found.error().message;
    EXPECT_EQ(shape_of(found->topology), shape_of(parse_topology(spec)))
        << spec << ": " << found->topology.name;
  }
}

TEST(Recognition, TakesHostsOfTwoCablesForServersAsTheirNamesakesOfOne) {
  Cabling cabling = cabling_of(6, 3,
                               {{"n0", "s0"},
                                {"n1", "s0"},
                                {"n1", "s1"},
                                {"n2", "s1"},
                                {"n3", "s1"},
                                {"n4", "s2"},
                                {"n5", "s2"},
                                {"n5", "s0"},
                                {"s0", "s1"},
                                {"s1", "s2"}});
  for (CabledNode& node : cabling.nodes) node.kind = CabledNode::Kind::kUnknown;
  const auto found = topology_of("cables", std::move(cabling));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_THAT(found->nodes, testing::ElementsAre("n0", "n1", "n2", "n3", "n4", "n5"));
  EXPECT_THAT(found->notes,
              Contains("cables: does not tell servers from switches; by their cables and names, s0, s1, s2 "
                       "are switches, unless --hosts REGEX or --switches REGEX tells otherwise"));
}

TEST(Recognition, DecidesWhichUnknownDevicesAreServersWhereSomeCablesAreMissing) {
  for (const auto& [spec, gone] : std::vector<std::pair<std::string, std::set<std::string>>>{
           {"bcube:4,1", {"<13>", "<03>:1 to level 1 switch 3"}},
           {"bcube:5,1", {"<00>", "<44>:1 to level 1 switch 4"}}}) {
    Cabling cabling = without(spec, gone);
    for (CabledNode& node : cabling.nodes) node.kind = CabledNode::Kind::kUnknown;
    const auto found = topology_of("cables", std::move(cabling));
    ASSERT_TRUE(found) << spec << ": " << found.error().message;
    EXPECT_EQ(shape_of(found->topology), shape_of(parse_topology(spec)))
        << spec << ": " << found->topology.name;
    EXPECT_EQ(missing_of(found->topology), gone.size()) << spec;
  }
}

TEST(Recognition, AssumesTheUsualRateWhereAFileTellsTheOddOnesOnly) {
  Cabling cabling = cabling_of(8, 1,
                               {{"n0", "s0"},
                                {"n1", "s0"},
                                {"n2", "s0"},
                                {"n3", "s0"},
                                {"n4", "s0"},
                                {"n5", "s0"},
                                {"n6", "s0"},
                                {"n7", "s0"}});
  for (Cable& cable : cabling.cables) cable.bandwidth_bytes_per_s = 0;
  cabling.cables[3].bandwidth_bytes_per_s = 16e9 / 8;
  const auto found = topology_of("cables", std::move(cabling));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_THAT(found->notes,
              Contains(HasSubstr("the rate of 7 cables of servers is not known; assuming 100Gb")));
  EXPECT_THAT(found->notes, Contains(HasSubstr("cable n3:0 to s0 (16Gb instead of 100Gb)")));
}

TEST(Recognition, TakesNoLeafOfOneKnownServerForAServer) {
  // Leaves of one host each, but for two; the file tells the hosts.
  Cabling cabling = cabling_of(
      6, 5,
      {{"n0", "s0"}, {"n1", "s1"}, {"n2", "s2"}, {"n3", "s3"}, {"n4", "s3"}, {"n5", "s4"}, {"n0", "s4"}});
  for (std::size_t i = 6; i < cabling.nodes.size(); ++i) cabling.nodes[i].kind = CabledNode::Kind::kUnknown;
  cabling.heard_by_servers = true;
  const auto found = topology_of("cables", std::move(cabling));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_THAT(found->nodes, testing::ElementsAre("n0", "n1", "n2", "n3", "n4", "n5"));
}

TEST(Recognition, TakesNoSwitchForAServerWhereAllNamesAreAlike) {
  Cabling cabling = cabling_of(6, 3,
                               {{"n0", "s0"},
                                {"n1", "s0"},
                                {"n2", "s0"},
                                {"n3", "s1"},
                                {"n4", "s1"},
                                {"n5", "s1"},
                                {"s0", "s2"},
                                {"s1", "s2"}});
  for (std::size_t i = 0; i < cabling.nodes.size(); ++i) {
    cabling.nodes[i].kind = CabledNode::Kind::kUnknown;
    cabling.nodes[i].name = "d" + std::to_string(i);
  }
  const auto found = topology_of("cables", std::move(cabling));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_THAT(found->nodes, testing::ElementsAre("d0", "d1", "d2", "d3", "d4", "d5"));
}

TEST(Recognition, AssumesWhatJoinsLeavesThatOnlyServersTold) {
  // Two leaves of two servers, and one of one.
  Cabling cabling = cabling_of(5, 3, {{"n0", "s0"}, {"n1", "s0"}, {"n2", "s1"}, {"n3", "s1"}, {"n4", "s2"}});
  EXPECT_THAT(topology_of("lldp", cabling).error().message,
              HasSubstr("no cables join server \"n2\" with \"n0\""));
  cabling.heard_by_servers = true;
  const auto found = topology_of("lldp", cabling);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->topology.spec, "leafspine:3,2[0-4]");
  EXPECT_THAT(
      found->notes,
      Contains(HasSubstr("servers do not hear what joins their switches; assuming 2 switches above, each "
                         "with a cable of 100Gb to every one of them")));
  // The cables that are assumed are not listed.
  EXPECT_FALSE(found->cabling.value->has_uplinks);
  EXPECT_THAT(found->cabling.value->nodes, testing::SizeIs(8));
  EXPECT_THAT(found->cabling.value->cables, testing::SizeIs(5));
  EXPECT_LE(prove_plans(found->topology), 1.05);

  // Two NICs to each of two racks.
  Cabling rails = cabling_of(4, 4,
                             {{"n0", "s0"},
                              {"n0", "s1"},
                              {"n1", "s0"},
                              {"n1", "s1"},
                              {"n2", "s2"},
                              {"n2", "s3"},
                              {"n3", "s2"},
                              {"n3", "s3"}});
  rails.heard_by_servers = true;
  const auto racks = topology_of("lldp", rails);
  ASSERT_TRUE(racks) << racks.error().message;
  EXPECT_EQ(racks->topology.num_servers(), 4);
  EXPECT_LE(prove_plans(racks->topology), 1.05);

  // A rate that is given holds for the cables that are assumed, too.
  cabling.tier_rates = {0, 400e9 / 8};
  EXPECT_EQ(value_or_throw(topology_of("lldp", cabling)).topology.levels[1].bandwidth_bytes_per_s, 400e9 / 8);
  cabling.tier_rates = {25e9 / 8};
  EXPECT_THAT(topology_of("lldp", cabling).error().message,
              HasSubstr("--rate leaf: the file tells the rates"));

  // A server without a switch is joined by nothing.
  Cabling alone = cabling_of(4, 2, {{"n0", "s0"}, {"n1", "s1"}, {"n2", "n3"}});
  alone.heard_by_servers = true;
  EXPECT_FALSE(topology_of("lldp", alone));
}

TEST(Graph, RejectsInvalidFilesWithOneLine) {
  const auto message = [](const std::string& cables) {
    const auto read =
        parse_topology_file("g.yaml",
                            "hips-topology: 1\nshape: graph\nservers: {count: 2}\nswitches: {names: "
                            "[leaf]}\n" +
                                cables);
    return read ? std::string("read") : read.error().message;
  };
  EXPECT_EQ(
      message("cables:\n  - {server: 0, nic: 0, switch: leaf}\n  - {server: 1, nic: 0, switch: leaf}\n"),
      "read");
  EXPECT_THAT(message(""), HasSubstr("the key cables is missing"));
  EXPECT_THAT(message("cables:\n  - {server: 0, nic: 0, switch: core}\n"),
              HasSubstr("unknown switch \"core\""));
  EXPECT_THAT(
      message("cables:\n  - {server: 0, nic: 0, switch: leaf}\n  - {server: 0, nic: 0, switch: leaf}\n"),
      HasSubstr("g.yaml: line 7: NIC 0 of server 0 has a cable already, that of line 6; a NIC has one"));
  EXPECT_THAT(message("cables:\n  - {server: 0, nic: 0}\n"), HasSubstr("to and to-nic belong together"));
  EXPECT_THAT(message("links: []\ncables: []\n"), HasSubstr("links is not for shape: graph"));
}

}  // namespace
}  // namespace hips::topology
