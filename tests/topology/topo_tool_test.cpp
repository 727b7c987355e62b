#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <hips/topology.hpp>

#include "tests/processor_time.hpp"
#include "tests/topology/samples.hpp"
#include "tests/topology/topo_tool.hpp"

// `hips topo` on specs and topology files, for people and programs.

namespace hips {
namespace {

using test::Outcome;
using test::run;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(TopoTool, PrintsASummary) {
  const Outcome outcome = run("topo -t bcube:3,1");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out,
            "BCube(3,1)  (bcube:3,1)\n"
            "  servers   9, 2 NICs each\n"
            "  switches  6\n"
            "  cables    18\n"
            "  relaying  servers forward messages; any two are at most 2 hops apart\n"
            "  levels\n"
            "    level 0  radix 3  NIC 0  100 Gb/s, 1 us  3 switches, one for each group\n"
            "    level 1  radix 3  NIC 1  100 Gb/s, 1 us  3 switches, one for each group\n"
            "  16 MiB    predicted allreduce: 1.21 ms over all 9 servers\n");
}

TEST(TopoTool, DiffEndsAsDiffDoes) {
  EXPECT_EQ(run("topo diff rail:4,2 rail:4,2").exit_code, 0);
  EXPECT_EQ(run("topo diff rail:4,2 rail:4,2").out, "");
  const Outcome differ = run("topo diff switch:8 switch:9");
  EXPECT_EQ(differ.exit_code, 1);
  EXPECT_THAT(differ.out, HasSubstr("+ server <8>\n"));
  EXPECT_THAT(differ.out, HasSubstr("~ predicted allreduce of 16 MiB: "));
  EXPECT_EQ(run("topo diff switch:8 no-such-spec 2>&1").exit_code, 2);
  EXPECT_EQ(run("topo diff switch:8 2>&1").exit_code, 2);
  const auto json = nlohmann::json::parse(run("topo diff --format json switch:8 switch:9").out);
  EXPECT_FALSE(json["same"]);
  EXPECT_EQ(json["servers_new"], nlohmann::json::array({"<8>"}));
}

TEST(TopoTool, NamesTheSlowCableAndWhatItCosts) {
  const std::string path = ::testing::TempDir() + "slow.csv";
  std::ofstream file(path);
  file << "StartDevice,StartPort,EndDevice,EndPort,BandWidth\n";
  for (int server = 0; server < 8; ++server)
    file << fmt::format("n{},eth0,leaf{},{},{}\n", server, server / 4, server % 4,
                        server == 5 ? 25000 : 100000);
  for (int leaf = 0; leaf < 2; ++leaf)
    for (int spine = 0; spine < 2; ++spine)
      file << fmt::format("leaf{},{},spine{},{},100000\n", leaf, 10 + spine, spine, leaf);
  file.close();
  const std::string out = run("topo " + path + " 2>/dev/null").out;
  EXPECT_THAT(out, HasSubstr("  leaf      4 servers x 100 Gb/s down, 2 x 100 Gb/s up: 2:1\n"));
  EXPECT_THAT(out, HasSubstr("  unlike    leaf1 port 1 -- n5 eth0: 25 Gb/s, its like 100 Gb/s\n"));
  EXPECT_THAT(out, HasSubstr("the slow cable n5 -- leaf1 makes 16 MiB "));
}

TEST(TopoTool, ShowsEveryServersAddressNicsAndNeighbours) {
  EXPECT_THAT(run("topo -t bcube:3,1 --verbose").out, HasSubstr("server 5 <12>\n"
                                                                "  NIC 0  level 0 switch 1  to <10> <11>\n"
                                                                "  NIC 1  level 1 switch 2  to <02> <22>\n"));
  EXPECT_THAT(run("topo -t torus:4x2/2 --verbose").out, HasSubstr("server 6 (2,1)  ranks 12-13\n"
                                                                  "  NIC 0  x+  to (3,1) NIC 1\n"
                                                                  "  NIC 1  x-  to (1,1) NIC 0\n"
                                                                  "  NIC 2  y+  to (2,0) NIC 3\n"
                                                                  "  NIC 3  y-  to (2,0) NIC 2\n"));
  EXPECT_THAT(
      run("topo -t fattree:4 --verbose").out,
      HasSubstr(
          "server 14 <310>\n  NIC 0  pod 3 edge 1  edge: <311>  pod: <300>  core: <010> <110> <210>\n"));
  EXPECT_THAT(run("topo -t rail:40,2 --verbose").out,
              HasSubstr("server 1 <1>\n  NIC 0  rail 0 switch  to <0> <2> ... <39> (39 servers)\n"));
}

/// The servers in the output of `topo -v`, after the summary.
std::string servers_of(const std::string& spec) {
  const std::string out = run("topo -v -t '" + spec + "'").out;
  const std::size_t end = out.find("\n\n");
  return end == std::string::npos ? out : out.substr(end + 2);
}

TEST(TopoTool, ShowsOnlyServersInUseOfAPart) {
  EXPECT_EQ(servers_of("torus:4[0-1]"),
            "server 0 (0)\n"
            "  NIC 0  x+  to (1) NIC 1\n"
            "  NIC 1  x-  leads to no server in use\n"
            "server 1 (1)\n"
            "  NIC 0  x+  leads to no server in use\n"
            "  NIC 1  x-  to (0) NIC 0\n");
  EXPECT_EQ(servers_of("mesh:4[0-1]/3"),
            "server 0 (0)  ranks 0-2\n"
            "  NIC 0  x+  to (1) NIC 1\n"
            "  NIC 1  x-  leads nowhere\n"
            "server 1 (1)  ranks 3-5\n"
            "  NIC 0  x+  leads to no server in use\n"
            "  NIC 1  x-  to (0) NIC 0\n");
  EXPECT_EQ(servers_of("bcube:3,1[0-1,4]"),
            "server 0 <00>\n"
            "  NIC 0  level 0 switch 0  to <01>\n"
            "  NIC 1  level 1 switch 0  leads to no server in use\n"
            "server 1 <01>\n"
            "  NIC 0  level 0 switch 0  to <00>\n"
            "  NIC 1  level 1 switch 1  to <11>\n"
            "server 2 <11>\n"
            "  NIC 0  level 0 switch 1  leads to no server in use\n"
            "  NIC 1  level 1 switch 1  to <01>\n");
  EXPECT_EQ(servers_of("bcube:3,1[0-1,4]/2"),
            "server 0 <00>  ranks 0-1\n"
            "  NIC 0  level 0 switch 0  to <01>\n"
            "  NIC 1  level 1 switch 0  leads to no server in use\n"
            "server 1 <01>  ranks 2-3\n"
            "  NIC 0  level 0 switch 0  to <00>\n"
            "  NIC 1  level 1 switch 1  to <11>\n"
            "server 2 <11>  ranks 4-5\n"
            "  NIC 0  level 0 switch 1  leads to no server in use\n"
            "  NIC 1  level 1 switch 1  to <01>\n");
  EXPECT_THAT(
      servers_of("fattree:4[0-1,8]"),
      HasSubstr("server 2 <200>\n"
                "  NIC 0  pod 2 edge 0  edge: no server in use  pod: no server in use  core: <000>\n"));
  // Long lists also count only servers in use.
  EXPECT_THAT(servers_of("rail:60,1[0,2,20-50]"),
              HasSubstr("server 1 <2>\n  NIC 0  rail 0 switch  to <0> <20> ... <50> (32 servers)\n"));
}

TEST(TopoTool, PrintsTheTopologyOfTheLibraryAsJson) {
  for (const std::string& spec : tests::sample_specs()) {
    const Topology topology = parse_topology(spec);
    const auto json = nlohmann::json::parse(run("topo --json --verbose -t " + spec).out);
    EXPECT_EQ(json.at("spec"), topology.spec);
    EXPECT_EQ(json.at("servers"), topology.num_servers());
    EXPECT_EQ(json.at("ranks"), topology.num_ranks());
    EXPECT_EQ(json.at("switches"), topology.num_switches);
    EXPECT_EQ(json.at("cables"), topology.num_links);
    ASSERT_EQ(json.at("levels").size(), topology.levels.size());
    ASSERT_EQ(json.at("server_list").size(), static_cast<std::size_t>(topology.num_servers()));
    const std::int64_t local = topology.ranks_per_server;
    for (std::int64_t server = 0; server < topology.num_servers(); ++server) {
      const auto& each = json.at("server_list").at(server);
      EXPECT_EQ(each.at("server"), server);
      EXPECT_EQ(each.at("first_rank"), server * local);
      ASSERT_EQ(each.at("nics").size(), static_cast<std::size_t>(topology.num_rails));
      using Way = std::tuple<Rail, std::int32_t, std::int64_t, Rail>;
      std::set<Way> told, known;
      for (const auto& nic : each.at("nics")) {
        for (const auto& way : nic.at("neighbours")) {
          told.emplace(nic.at("nic"), way.at("level"), way.at("server"), way.at("nic"));
        }
      }
      for (const Hop& hop : topology.neighbours(static_cast<Rank>(server * local))) {
        if (hop.out != kNoRail) known.emplace(hop.out, hop.level, hop.to / local, hop.in);
      }
      EXPECT_EQ(told, known) << spec << " server " << server;
    }
  }
}

TEST(TopoTool, ReadsTheTopologyFromTheEnvironmentByDefault) {
  EXPECT_THAT(run("topo", "HIPS_TOPO=torus:3x3").out, HasSubstr("Torus(3x3)"));
  EXPECT_THAT(run("topo -t switch:4", "HIPS_TOPO=torus:3x3").out, HasSubstr("Switch(4)"));
}

TEST(TopoTool, RejectsBadInputInOneLineWithStatusTwo) {
  Outcome outcome = run("topo -t bcube:3,k 2>&1", "env -u HIPS_TOPO");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out,
            "hips: topology \"bcube:3,k\": k is \"k\"; it must be a whole number from 0 to 29\n");
  outcome = run("topo 2>&1", "env -u HIPS_TOPO");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.out, HasSubstr("no topology; give -t SPEC"));
}

TEST(TopoTool, WritesATopologyFileAndReadsItAsASpec) {
  const std::string path = ::testing::TempDir() + "hips_topo_tool_test.yaml";
  for (const char* verbose : {"", "-v"}) {
    EXPECT_EQ(run(fmt::format("topo -t torus:4x2@25Gb/2 --format yaml {} > {}", verbose, path)).exit_code, 0);
    EXPECT_EQ(run("topo --spec -t " + path).out, "torus:4x2@25Gb/2\n");
  }
  std::ofstream(path) << "hips-topology: 1\nshape: bcube:3,1\nservers: {names: 'n[0-8]'}\n"
                         "links: [{server: n4, nic: 1, rate: 10Gb}]\n";
  EXPECT_THAT(run("topo -v -t " + path).out,
              ::testing::AllOf(HasSubstr("\n  link      server n4 NIC 1: 10 Gb/s\n"),
                               HasSubstr("\nserver 5 <12>  node n5\n")));
  EXPECT_EQ(nlohmann::json::parse(run("topo --json -t " + path).out).at("nodes").size(), 9U);
  // Plans avoid the slow link, and the other commands use this file.
  EXPECT_THAT(run("plan --rank 4 -a hips -b 64M -t " + path).out,
              ::testing::AllOf(HasSubstr("weighted trees of 9 servers"), HasSubstr("ratio       1.0")));
  EXPECT_THAT(run("plan --rank 4 -a flat-ring -b 64M -t " + path).out, HasSubstr("ratio       9."));
  EXPECT_THAT(run("check -t " + path).out, HasSubstr("proved: "));
  EXPECT_THAT(run("topo", "HIPS_TOPO=" + path).out, HasSubstr("link      server n4"));
  std::ofstream(path) << "hips-topology: 1\nshape: bcube:3,1\nlinks: [{server: 9, nic: 1}]\n";
  const Outcome outcome = run("plan -t " + path + " 2>&1");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "hips: " + path + ": line 3: server is \"9\"; it must be a number from 0 to 8\n");
  std::remove(path.c_str());
  EXPECT_EQ(run("topo --format yaml -v -t switch:100000 2>&1").exit_code, 2);
}

TEST(TopoTool, RestrictsATopologyToTheServersOfAJob) {
  const std::string path = ::testing::TempDir() + "hips_topo_tool_job.yaml", hosts = path + ".hosts";
  std::ofstream(path) << "- topology: a\n  tree:\n    switches:\n"
                         "      - {switch: r, children: 's[1-2]'}\n      - {switch: s1, nodes: 'n[1-4]'}\n"
                         "      - {switch: s2, nodes: 'n[5-8]'}\n";
  EXPECT_EQ(run("topo --spec --slurm " + path).out, "leafspine:2,4\n");
  EXPECT_EQ(run("topo --spec --nodelist 'n[1-2,5-6]' --slurm " + path).out, "leafspine:2,2\n");
  EXPECT_EQ(run("topo --format yaml --slurm " + path + " > " + path + ".yaml").exit_code, 0);
  std::ofstream(hosts) << "n7 slots=2\nn5 slots=2\n";
  EXPECT_EQ(run("topo --spec --hostfile " + hosts + " -t " + path + ".yaml").out, "switch:2/2\n");
  EXPECT_THAT(run("plan -b 1M --hostfile " + hosts + " -t " + path + ".yaml").out, HasSubstr("Switch(2)"));
  EXPECT_THAT(run("compare -b 1M -a hips --hostfile " + hosts + " -t " + path + ".yaml").out,
              HasSubstr("Switch(2)"));
  const Outcome outcome = run("topo --nodelist n[1-3,5] -t " + path + ".yaml 2>&1");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("leafspine:2,4[0-2,4]"));
  for (const std::string& file : {path, hosts, path + ".yaml"}) std::remove(file.c_str());
}

TEST(TopoTool, NamesTheServersThatRelayForAJob) {
  const std::string path = ::testing::TempDir() + "ring.yaml";
  std::ofstream(path) << "hips-topology: 1\nshape: torus:8\nservers: {names: 'n[0-7]'}\n";
  const std::string job = " -t " + path + " --nodelist n0,n3";
  const std::string note =
      "hips: Torus(8): the servers of the job reach each other only through 2 servers outside it; n[1-2] have to "
      "relay, that is to forward between their NICs, and take no part in the job\n";
  EXPECT_THAT(run("topo" + job + " 2>&1").out, StartsWith(note + "Graph(2 servers, 2 switches)  (part-of:"));
  EXPECT_EQ(run("topo" + job + " 2>&1 >/dev/null").out, note);
  const auto json = nlohmann::json::parse(run("topo --json" + job).out);
  EXPECT_EQ(json["notes"], nlohmann::json::array({note.substr(6, note.size() - 7)}));
  EXPECT_EQ(json["nodes"], (nlohmann::json::array({"n0", "n3"})));
  EXPECT_EQ(json["diameter_hops"], 1);
  for (const char* command : {"plan", "check", "compare"}) {
    const Outcome outcome = run(command + job + " 2>&1 >/dev/null");
    EXPECT_EQ(outcome.exit_code, 0) << command;
    EXPECT_EQ(outcome.out, note) << command;
  }
  EXPECT_THAT(run("check" + job + " 2>/dev/null").out, HasSubstr("proved"));
  // A file keeps what was made of the job: to the job its relays are switches.
  EXPECT_EQ(run("topo --format yaml" + job + " > " + path + ".job.yaml").exit_code, 0);
  EXPECT_THAT(run("check -t " + path + ".job.yaml").out, HasSubstr("proved"));
  // A job that is connected needs no others.
  EXPECT_EQ(run("topo --spec -t " + path + " --nodelist n[0-1]").out, "torus:8[0-1]\n");
}

TEST(TopoTool, TellsServersThatAreNotConnected) {
  const std::string path = ::testing::TempDir() + "apart.yaml";
  std::ofstream(path)
      << "hips-topology: 1\nshape: graph\nservers: {count: 4}\ncables:\n"
         "  - {server: 0, nic: 0, to: 1, to-nic: 0}\n  - {server: 2, nic: 0, to: 3, to-nic: 0}\n";
  const std::string line = "  relaying  no: the servers are not connected; they are 2 components\n";
  EXPECT_THAT(run("topo " + path).out, HasSubstr(line));
  EXPECT_TRUE(nlohmann::json::parse(run("topo --json " + path).out)["diameter_hops"].is_null());
  EXPECT_THAT(run("topo bcube:4,1[0,15]").out, HasSubstr(line));
  EXPECT_THAT(run("topo bcube:4,1[0-1]").out,
              HasSubstr("servers of a part reach only their neighbours in it\n"));
  EXPECT_THAT(run("topo fattree:4[0-1,9]").out,
              HasSubstr("no: switches connect any two servers in one hop\n"));
}

TEST(TopoTool, PredictsTheTimeOverALeafWithAllNicsThatShareIt) {
  // Two racks of four servers with two NICs each, to two leaf switches of the rack.
  const std::string path = ::testing::TempDir() + "racks.csv";
  std::ofstream file(path);
  file << "StartDevice,StartPort,EndDevice,EndPort,BandWidth\n";
  for (int server = 0; server < 8; ++server)
    for (int nic = 0; nic < 2; ++nic)
      file << fmt::format("n{},eth{},leaf{}-{},{},100G\n", server, nic, server / 4, nic, server % 4);
  for (int leaf = 0; leaf < 4; ++leaf)
    for (int spine = 0; spine < 2; ++spine)
      file << fmt::format("leaf{}-{},up{},spine{},{},100G\n", leaf / 2, leaf % 2, spine, spine, leaf);
  file.close();
  const auto health = nlohmann::json::parse(run("topo --json " + path).out)["health"];
  EXPECT_EQ(health["leaf"], "leaf0-0");
  const auto rail = nlohmann::json::parse(run("topo --json rail:4,2").out)["health"];
  EXPECT_DOUBLE_EQ(health["leaf_seconds"].get<double>(), rail["seconds"].get<double>());
}

TEST(TopoTool, RejectsAnEmptyListOfServers) {
  for (const char* command : {"topo", "plan", "compare"}) {
    for (const char* list : {"--nodelist ''", "--hostfile ''"}) {
      const Outcome outcome = run(fmt::format("{} -t bcube:3,1 {} 2>&1", command, list));
      EXPECT_EQ(outcome.exit_code, 2) << command << " " << list;
      EXPECT_THAT(outcome.out, HasSubstr("empty ")) << command << " " << list;
      EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1);
    }
  }
}

TEST(TopoTool, RejectsFlagsThatContradictEachOther) {
  for (const auto& [flags, words] : {
           std::pair("-t bcube:3,1 --slurm topology.conf", "excludes"),
           std::pair("-t bcube:3,1 --slurm-topology foo",
                     "--slurm-topology foo: \"bcube:3,1\" is no file; leave --slurm-topology out"),
           std::pair("-t bcube:3,1 --spec --json", "excludes"),
           std::pair("-t bcube:3,1 --spec --format yaml", "excludes"),
           std::pair("-t bcube:3,1 --json --format text", "excludes"),
       }) {
    const Outcome outcome = run(fmt::format("topo {} 2>&1", flags));
    EXPECT_EQ(outcome.exit_code, 2) << flags;
    EXPECT_THAT(outcome.out, HasSubstr(words));
  }
}

TEST(TopoTool, OptionsBeforeACommandBelowAreRefused) {
  const Outcome outcome = run("topo --rate leaf=25Gb diff a b 2>&1");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "hips: --rate is an option of hips topo; write it behind diff, if diff has it\n");
}

TEST(TopoTool, ReportsThatItsOutputCannotBeWritten) {
  const Outcome outcome = run("topo -t bcube:3,1 2>&1 >/dev/full", "env -u HIPS_TOPO");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("No space left on device"));
}

TEST(TopoTool, SummarisesAMillionServersAtOnceAndStreamsThem) {
  const auto begin = hips::test::processor_time();
  EXPECT_THAT(run("topo -t bcube:10,5").out, HasSubstr("servers   1000000, 6 NICs each"));
  // The first servers are printed at once, although all of them would take seconds.
  EXPECT_THAT(run("topo -t bcube:10,5 --verbose | head -n 20").out, HasSubstr("server 0 <000000>"));
  EXPECT_LT(hips::test::processor_time() - begin, std::chrono::seconds(5));
}

}  // namespace
}  // namespace hips
