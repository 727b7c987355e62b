#include "topology/parts/restrict.hpp"
#include "topology/clusters/job_hosts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include <fmt/format.h>

#include "tests/choices.hpp"
#include "tests/topology/samples.hpp"
#include "topology/formats/parse.hpp"

namespace hips::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TopologyFile named(const std::string& spec) {
  TopologyFile file;
  file.topology = value_or_throw(parse(spec));
  for (std::int64_t s = 0; s < file.topology.num_servers(); ++s)
    file.server_names.push_back(fmt::format("s{}", s));
  return file;
}

JobHosts hosts_of(const std::set<std::int64_t>& servers) {
  JobHosts hosts;
  for (const std::int64_t server : servers) hosts.names.push_back(fmt::format("s{}", server));
  return hosts;
}

std::string spec_of(const std::string& spec, const std::set<std::int64_t>& servers) {
  const auto part = restrict_to(named(spec), hosts_of(servers));
  return part ? part->topology.spec : part.error().message;
}

TEST(Restrict, PartsOfSwitchesAndTreesStayTheirFamilyIfPossible) {
  EXPECT_EQ(spec_of("switch:12", {1, 5, 7}), "switch:3");
  EXPECT_EQ(spec_of("rail:9,2@25Gb/2", {0, 8}), "rail:2,2@25Gb/2");
  EXPECT_EQ(spec_of("leafspine:6,8,1", {0, 3, 8, 11, 40, 41}), "leafspine:3,2,1");
  EXPECT_EQ(spec_of("leafspine:6,8,1", {0, 3, 5}), "switch:3");
  EXPECT_EQ(spec_of("leafspine:6,8,1", {0, 8, 16}), "switch:3");
  EXPECT_EQ(spec_of("fattree:4", {0, 1}), "switch:2");
  EXPECT_EQ(spec_of("fattree:4", {0, 1, 6, 7, 12, 13}), "leafspine:3,2");
  EXPECT_EQ(spec_of("fattree:4", {0}), "switch:1");
  // Others are a part of the whole.
  EXPECT_EQ(spec_of("leafspine:6,8,1@25Gb/2", {0, 1, 8}), "leafspine:6,8,1[0-1,8]@25Gb/2");
  EXPECT_EQ(spec_of("fattree:4", {0, 1, 2, 3, 4, 5, 6, 7}), "fattree:4[0-7]");
}

TEST(Restrict, PartsOfGridsThatAreGridsStayGrids) {
  EXPECT_EQ(spec_of("bcube:3,1", {0, 1, 3, 4}), "bcube:2,1");
  EXPECT_EQ(spec_of("bcube:3,1", {3, 4, 5}), "bcube:3,0");
  // Two of four in the middle digit, all of the first, two of three in the last.
  EXPECT_EQ(spec_of("bcube:2x4x3", {0, 1, 4, 5, 16, 17, 20, 21}), "bcube:2,2");
  EXPECT_EQ(spec_of("torus:4x4", {4, 5, 6, 7}), "torus:4");
  EXPECT_EQ(spec_of("torus:4x4", {9}), "switch:1");
  EXPECT_EQ(spec_of("bcube:3,1", {0, 1, 3}), "bcube:3,1[0-1,3]");
  EXPECT_EQ(spec_of("torus:4x4", {0, 1}), "torus:4x4[0-1]");
  // Any rectangle of a mesh is a mesh.
  EXPECT_EQ(spec_of("mesh:4x4", {5, 6, 9, 10, 13, 14}), "mesh:2x3");
  EXPECT_EQ(spec_of("mesh:4x4", {0, 1, 4}), "mesh:4x4[0-1,4]");
  // A part of a part is a part of the whole: its server 2 is server 3 of the whole.
  EXPECT_EQ(spec_of("bcube:3,1[0,1,3,8]", {0, 2}), "bcube:3,1[0,3]");
  // Where others have to relay, it is a graph.
  EXPECT_EQ(spec_of("mesh:4x4", {0, 2}), "part-of:mesh:4x4");
  EXPECT_EQ(spec_of("bcube:3,1[0,1,3,8]", {1, 2}), "part-of:bcube:3,1[0-1,3,8]");
}

TEST(Restrict, APartHasExactlyTheWiringOfItsServers) {
  for (const std::string spec : {"bcube:4,1[0,3,5,9-11]", "torus:4x4[0,1,3,4,12,15]", "fattree:4[0-2,9]/2",
                                 "leafspine:3,4,2[0,1,2,4,11]"}) {
    const Topology part = value_or_throw(parse(spec));
    const Graph graph = part.graph();
    EXPECT_EQ(static_cast<std::int64_t>(graph.links.size()), part.num_links) << spec;
    std::set<std::int64_t> in_use(part.part.begin(), part.part.end());
    for (Rank rank = 0; rank < part.num_ranks(); ++rank) {
      EXPECT_EQ(part.rank_of(part.digits(rank)), rank) << spec;
      EXPECT_EQ(graph.nodes[static_cast<std::size_t>(rank / part.ranks_per_server)].id,
                rank / part.ranks_per_server);
      for (const Hop& hop : part.neighbours(rank)) {
        ASSERT_GE(hop.to, 0);
        ASSERT_LT(hop.to, part.num_ranks());
        const auto way = part.route(rank, hop.to);
        ASSERT_EQ(way.size(), 1U) << spec;
        EXPECT_EQ(way.front().to, hop.to);
        EXPECT_EQ(way.front().level, hop.level);
      }
    }
    // Writing and reading a file keeps it.
    TopologyFile file;
    file.topology = part;
    const auto again = parse_topology_file("part.yaml", value_or_throw(topology_file_text(file, false)));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->topology, part) << spec;
  }
}

TEST(Restrict, RejectsInvalidPartsWithARemedy) {
  EXPECT_EQ(value_or_throw(parse("bcube:3,1[7,0-3,5]")).spec, "bcube:3,1[0-3,5,7]");
  EXPECT_EQ(value_or_throw(parse("bcube:3,1[0-8]")).spec, "bcube:3,1");
  for (const auto& [spec, what] :
       {std::pair("bcube:3,1[0-3", "has no closing"), std::pair("bcube:3,1[0,9]", "a server in use"),
        std::pair("bcube:3,1[]", "a server in use"), std::pair("bcube:3,1[1,1]", "listed twice"),
        std::pair("bcube:3,1[3-1]", "the last of a range"),
        std::pair("bcube:3,1[0-8,0-8,0-8]", "list each once"),
        std::pair("bcube:1024,2[0-99999999999]", "the last of a range")}) {
    const auto made = parse(spec);
    ASSERT_FALSE(made) << spec;
    EXPECT_THAT(made.error().message, HasSubstr(what)) << spec;
  }
}

TEST(Restrict, AllServersOfATopologyAreThatTopology) {
  for (const std::string& spec : tests::sample_specs()) {
    TopologyFile file = named(spec);
    JobHosts hosts;
    hosts.names = file.server_names;
    // The order of the launcher does not matter.
    std::ranges::reverse(hosts.names);
    const auto part = restrict_to(file, hosts);
    ASSERT_TRUE(part) << spec << ": " << part.error().message;
    EXPECT_EQ(*part, file) << spec;
  }
}

// Servers of the part are neighbours if and only if they are neighbours in the whole, by the remaining NICs.
// Servers keep their names.
TEST(Restrict, ARandomPartHasTheWiringOfTheWhole) {
  std::mt19937_64 random(test::seed());
  int parts = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const auto& specs = tests::sample_specs();
    TopologyFile whole = named(specs[random() % specs.size()]);
    const std::int64_t servers = whole.topology.num_servers();
    if (servers > 64) continue;
    for (Rail rail = 0; rail < whole.topology.num_rails; ++rail)
      whole.devices.push_back(fmt::format("d{}", rail));
    std::set<std::int64_t> chosen;
    // Draw a few servers, or all with certain digits, as both occur in practice.
    const std::int64_t step = 1 + static_cast<std::int64_t>(random() % 4);
    for (std::int64_t s = static_cast<std::int64_t>(random() % 2); s < servers; s += step) chosen.insert(s);
    if (random() % 3 == 0)
      chosen = {static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(servers))};
    if (chosen.empty()) continue;
    const auto part = restrict_to(whole, hosts_of(chosen));
    if (!part) {
      EXPECT_EQ(part.error().code, Code::kUnsupported) << part.error().message;
      continue;
    }
    // Those that others relay for: relays_test.cpp.
    if (part->notes) continue;
    ++parts;
    const std::vector<std::int64_t> old(chosen.begin(), chosen.end());
    const Topology& topology = part->topology;
    ASSERT_EQ(static_cast<std::size_t>(topology.num_servers()), old.size());
    const std::int32_t local = topology.ranks_per_server, old_local = whole.topology.ranks_per_server;
    for (std::int64_t s = 0; s < topology.num_servers(); ++s) {
      EXPECT_EQ(part->server_name(s), fmt::format("s{}", old[static_cast<std::size_t>(s)]));
      std::set<std::tuple<std::int64_t, std::string>> known;
      for (const Hop& hop :
           whole.topology.neighbours(static_cast<Rank>(old[static_cast<std::size_t>(s)] * old_local))) {
        if (hop.out != kNoRail) known.emplace(hop.to / old_local, fmt::format("d{}", hop.out));
      }
      for (const Hop& hop : topology.neighbours(static_cast<Rank>(s * local))) {
        if (hop.out == kNoRail) continue;
        // In a tree of switches all servers are one hop apart.
        const auto peer = static_cast<Rank>(old[static_cast<std::size_t>(hop.to / local)] * old_local);
        const auto self = static_cast<Rank>(old[static_cast<std::size_t>(s)] * old_local);
        if (!whole.topology.servers_relay && whole.topology.route(self, peer).size() == 1) continue;
        EXPECT_TRUE(known.contains({old[static_cast<std::size_t>(hop.to / local)], part->device(s, hop.out)}))
            << whole.topology.spec << " to " << topology.spec;
      }
    }
  }
  EXPECT_GT(parts, 100);
}

TEST(Restrict, KeepsRatesAndOverrides) {
  const auto file =
      parse_topology_file("t.yaml",
                          "hips-topology: 1\nshape: bcube:3,1\nrelay: false\n"
                          "levels: [{rate: 25Gb}, {rate: 10Gb}]\n"
                          "servers: {names: 's[0-8]', devices: [a, b]}\n"
                          "links: [{server: s4, nic: b, rate: 1Gb}, {server: s8, nic: 0, rate: 1Gb}]\n");
  ASSERT_TRUE(file) << file.error().message;
  const auto part = restrict_to(*file, hosts_of({1, 4, 7}));
  ASSERT_TRUE(part) << part.error().message;
  EXPECT_EQ(part->topology.num_rails, 1);
  EXPECT_DOUBLE_EQ(part->topology.levels[0].bandwidth_bytes_per_s, 1.25e9);
  EXPECT_THAT(part->devices, ElementsAre("b"));
  ASSERT_EQ(part->topology.overrides.size(), 1U);
  EXPECT_EQ(part->topology.overrides[0].server, 1);
  EXPECT_EQ(part->topology.overrides[0].rail, 0);
  EXPECT_TRUE(part->topology.relay_off);
  EXPECT_THAT(part->topology.spec, ::testing::StartsWith(kPartOf));
  // A file describes what no spec describes.
  const auto back = parse_topology_file("p.yaml", value_or_throw(topology_file_text(*part, false)));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->topology.levels, part->topology.levels);
  EXPECT_EQ(back->topology.overrides, part->topology.overrides);
}

// NIC 0 of s1 leads to s2: without s2 it is not connected, and its rate is dropped.
TEST(Restrict, OmitsCablesToServersThatAreNotInUse) {
  const auto restricted = [](const std::string& shape, const std::string& links,
                             const std::set<std::int64_t>& servers) {
    const std::string names = fmt::format("s[0-{}]", value_or_throw(parse(shape)).num_servers() - 1);
    const auto file = value_or_throw(parse_topology_file(
        "t.yaml", fmt::format("hips-topology: 1\nshape: {}\nservers: {{names: '{}'}}\nlinks: [{}]\n", shape,
                              names, links)));
    const TopologyFile left = value_or_throw(restrict_to(file, hosts_of(servers)));
    const auto back = parse_topology_file("p.yaml", value_or_throw(topology_file_text(left, false)));
    EXPECT_TRUE(back) << back.error().message;
    EXPECT_EQ(back.value_or(TopologyFile{}).topology.overrides, left.topology.overrides);
    return left.topology;
  };
  EXPECT_EQ(restricted("mesh:4", "{server: s1, nic: 0, rate: 1Gb}", {0, 1}), value_or_throw(parse("mesh:2")));
  EXPECT_EQ(restricted("mesh:4x4", "{server: s1, nic: 0, rate: 1Gb}", {0, 1, 4, 5}),
            value_or_throw(parse("mesh:2x2")));
  EXPECT_EQ(restricted("torus:4", "{server: s0, nic: 1, rate: 1Gb}", {0, 1}),
            value_or_throw(parse("torus:4[0-1]")));
  EXPECT_EQ(restricted("torus:4", "{server: s1, nic: 0, state: down}", {0, 1}),
            value_or_throw(parse("torus:4[0-1]")));
  // A cable between two servers of the job is kept; the file may name either end.
  for (const char* link : {"{server: s1, nic: 0, rate: 1Gb}", "{server: s2, nic: 1, rate: 1Gb}"}) {
    const Topology left = restricted("mesh:4", link, {1, 2});
    ASSERT_EQ(left.overrides.size(), 1U);
    EXPECT_EQ(left.overrides[0].server, 0);
    EXPECT_EQ(left.overrides[0].rail, 0);
  }
}

TEST(Restrict, ReadsHostfilesAndNodelists) {
  const auto open_mpi =
      value_or_throw(read_hostfile("h", "# job\nn1 slots=2 max-slots=4\r\n\n  n0  slots=2 # last\n"));
  EXPECT_THAT(open_mpi.names, ElementsAre("n1", "n0"));
  EXPECT_EQ(open_mpi.ranks_per_host, 2);
  for (const std::string line : {"slots = 2", "slots =2", "slots= 2 max_slots = 4", "cpu=2", "count\t=\t2"})
    EXPECT_EQ(value_or_throw(read_hostfile("h", "\xef\xbb\xbfn0 " + line)).ranks_per_host, 2) << line;
  EXPECT_THAT(value_or_throw(read_hostfile("h", "fe80::1\nfe80::2 slots=1\n")).names,
              ElementsAre("fe80::1", "fe80::2"));
  EXPECT_EQ(value_or_throw(read_hostfile("h", "n0:3\nn1:3\n")).ranks_per_host, 3);
  EXPECT_EQ(value_or_throw(read_hostfile("h", "n0\nn1\nn0\nn1")).ranks_per_host, 2);
  EXPECT_THAT(value_or_throw(read_nodelist("n[08-10],x")).names, ElementsAre("n08", "n09", "n10", "x"));
  const auto part =
      restrict_to(named("switch:4"), value_or_throw(read_hostfile("h", "s3.cluster:2\ns1:2\n")));
  ASSERT_TRUE(part);
  EXPECT_EQ(part->topology.spec, "switch:2/2");
  EXPECT_THAT(part->server_names, ElementsAre("s1", "s3"));
}

TEST(Restrict, RejectsInvalidHostsWithARemedy) {
  for (const auto& [text, words] : std::vector<std::pair<std::string, std::string>>{
           {"", "h: line 1: the file has no host"},
           {"# none\n\n", "the file has no host"},
           {"n0 slots=0\n", "h: line 1: invalid slots \"0\""},
           {"n0 slots=x\n", "invalid slots \"x\""},
           {"n0:\n", "invalid slots \"\""},
           {"n0:-1\n", "invalid slots \"-1\""},
           {"n0 slots=99999999999999999999\n", "(valid: 1 to 65536)"},
           {"\nn0 slots\n", "h: line 2: \"slots\" is not KEY=VALUE"},
           {"n[0-1]\n", "\"n[0-1]\" is not a host name"},
           {"slots=2\n", "\"slots=2\" is not a host name"},
           {":2\n", "\"\" is not a host name"},
           {"n0:2\nn1:1\n", "\"n0\" has 2 slots (line 1), but \"n1\" has 1 (line 2)"},
           {"n0 slots=2\n#\nn1 slots=2\nn0\n",
            "\"n0\" has 3 slots (in 2 lines, from line 1 on), but \"n1\" has 2 (line 3)"},
           {"n0 slots = x\n", "invalid slots \"x\""},
       }) {
    const auto hosts = read_hostfile("h", text);
    ASSERT_FALSE(hosts) << text;
    EXPECT_THAT(hosts.error().message, HasSubstr(words)) << text;
    EXPECT_EQ(hosts.error().message.find('\n'), std::string::npos);
  }
  EXPECT_THAT(read_nodelist("n[0-999999]m[0-999999]").error().message, HasSubstr("has 1000000000000 names"));
  EXPECT_THAT(read_nodelist("a,a").error().message, HasSubstr("\"a\" occurs twice"));
  EXPECT_THAT(read_nodelist("").error().message, HasSubstr("is empty"));
  JobHosts unknown;
  unknown.names = {"x1"};
  EXPECT_THAT(restrict_to(named("switch:4"), unknown).error().message,
              HasSubstr("host \"x1\": the servers of Switch(4) are \"s0\" to \"s3\""));
  TopologyFile nameless;
  nameless.topology = value_or_throw(parse("switch:4"));
  EXPECT_THAT(restrict_to(nameless, unknown).error().message, HasSubstr("has no server names"));
}

}  // namespace
}  // namespace hips::topology
