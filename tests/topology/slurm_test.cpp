#include "topology/clusters/slurm.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/choices.hpp"
#include "tests/topology/random_slurm_tree.hpp"

namespace hips::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

ClusterTopology read(std::string_view text) {
  return value_or_throw(read_slurm_topology("topology.conf", text));
}

TEST(Slurm, ReadsOneSwitchAsASwitch) {
  const ClusterTopology slurm = read("SwitchName=s0 Nodes=n[2-4],login\n");
  EXPECT_EQ(slurm.topology.spec, "switch:4");
  EXPECT_THAT(slurm.nodes, ElementsAre("n2", "n3", "n4", "login"));
  EXPECT_TRUE(slurm.notes.empty());
}

TEST(Slurm, ReadsTwoTiersAsALeafSpineInTheOrderOfLeaves) {
  // The order of leaves is that of the top switch, not that of the lines.
  const ClusterTopology slurm = read(
      "# fabric\n"
      "SwitchName=s1 Nodes=b[08-10]\n"
      "SwitchName=s0 Nodes=a[0-2]\n"
      "SwitchName=top Switches=s[0-1]\n");
  EXPECT_EQ(slurm.topology.spec, "leafspine:2,3");
  EXPECT_THAT(slurm.nodes, ElementsAre("a0", "a1", "a2", "b08", "b09", "b10"));
}

TEST(Slurm, ReadsThreeTiersAsAFatTree) {
  std::string text = "SwitchName=core Switches=p[0-3]\n";
  for (int pod = 0; pod < 4; ++pod) {
    text += "SwitchName=p" + std::to_string(pod) + " Switches=e" + std::to_string(pod) + "[0-1]\n";
    for (int edge = 0; edge < 2; ++edge) {
      const std::string id = std::to_string(pod) + std::to_string(edge);
      text += "SwitchName=e" + id + " Nodes=n" + id + "[0-1]\n";
    }
  }
  const ClusterTopology slurm = read(text);
  EXPECT_EQ(slurm.topology.spec, "fattree:4");
  EXPECT_EQ(slurm.nodes.size(), 16U);
  EXPECT_EQ(slurm.nodes[5], "n101");
}

TEST(Slurm, OmitsTiersOfOneChild) {
  EXPECT_EQ(
      read("SwitchName=a Switches=b\nSwitchName=b Switches=c\nSwitchName=c Nodes=n[1-5]\n").topology.spec,
      "switch:5");
  EXPECT_EQ(read("SwitchName=a Nodes=n\n").topology.spec, "switch:1");
}

TEST(Slurm, ReadsBlocksAsLeaves) {
  const ClusterTopology slurm =
      read("BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\nBlockSizes=4,8\n");
  EXPECT_EQ(slurm.topology.spec, "leafspine:2,4");
  EXPECT_THAT(slurm.notes,
              ElementsAre("topology.conf: line 3: BlockSizes=\"4,8\" does not describe the wiring; ignored"));
}

TEST(Slurm, AcceptsKeysOfAnyCaseContinuedLinesAndComments) {
  const ClusterTopology slurm = read(
      "switchname=s0 NODES=n0,n1 # two\r\n"
      "\n"
      "   SWITCHNAME=s1 \\\n"
      "\tNodes=n2,\\\n"
      "n3  # and two\n"
      "SwitchName=top Switches=s0,s1");
  EXPECT_EQ(slurm.topology.spec, "leafspine:2,2");
  EXPECT_THAT(slurm.nodes, ElementsAre("n0", "n1", "n2", "n3"));
}

TEST(Slurm, NotesUnknownKeys) {
  const ClusterTopology slurm =
      read("SwitchName=s0 Nodes=n[0-1] LinkSpeed=100 Colour=red\nTopologyParam=RouteTree\n");
  EXPECT_EQ(slurm.topology.spec, "switch:2");
  EXPECT_THAT(slurm.notes,
              ElementsAre("topology.conf: line 1: Colour=\"red\" is unknown; ignored",
                          "topology.conf: line 1: LinkSpeed=\"100\" does not describe the wiring; ignored",
                          "topology.conf: line 2: TopologyParam=\"RouteTree\" is unknown; ignored"));
}

TEST(Slurm, ErrorsNameFileLineKeyValueAndRemedy) {
  for (const auto& [text, words] : std::vector<std::pair<std::string, std::string>>{
           {"", "line 1: the file has no switch, block or ring; write lines such as SwitchName="},
           {"# nothing\n", "no switch, block or ring"},
           {"SwitchName\n", "line 1: \"SwitchName\" is not KEY=VALUE"},
           {"=s0\n", "\"=s0\" is not KEY=VALUE"},
           {"\nSwitchName= Nodes=a\n", "line 2: nothing follows SwitchName="},
           {"SwitchName=s0 Nodes=\n", "nothing follows Nodes="},
           {"SwitchName=s0 nodes=a Nodes=b\n", "\"Nodes\" occurs twice"},
           {"Nodes=a\n", "Switches and Nodes belong to a switch or a block"},
           {"SwitchName=s0\n", "SwitchName=\"s0\" has neither Switches nor Nodes; write Switches= or Nodes="},
           {"SwitchName=s0 Switches=s1 Nodes=a\n", "has both Switches and Nodes"},
           {"SwitchName=s[0-1] Nodes=a\n", "SwitchName=\"s[0-1]\" is 2 names"},
           {"SwitchName=s! Nodes=a\n", "SwitchName: hostlist \"s!\": character 2 is \"!\""},
           {"SwitchName=s0 Nodes=a[3-1]\n",
            "line 1: Nodes: hostlist \"a[3-1]\": the range 3-1 descends; write 1-3"},
           {"SwitchName=s0 Nodes=a\nSwitchName=s0 Nodes=b\n", "line 2: SwitchName=\"s0\" occurs twice"},
           {"BlockName=s0 Nodes=a,a\n", "Nodes: \"a\" occurs twice in the file"},
           {"BlockName=s0 Nodes=a\nBlockName=s1 Nodes=a\n", "line 2: Nodes: \"a\" occurs twice"},
           {"SwitchName=s0 Nodes=ALL\n",
            "line 1: Nodes=ALL stands for all nodes of slurm.conf, which is not beside the file"},
           {"SwitchName=s0 Nodes=a\nInclude other.conf\n", "line 2: Include is followed in files only"},
           {"SwitchName=s0 Nodes=\"a b\n", "line 1: a \" is missing at the end"},
           {"SwitchName=t Switches=s0\n", "line 1: Switches: \"s0\" has no line; add SwitchName=s0"},
           {"SwitchName=s0 Nodes=a\nSwitchName=t Switches=s0,s0\n",
            "line 2: Switches: \"s0\" is named twice"},
           {"SwitchName=a Switches=b\nSwitchName=b Switches=a\n",
            "line 1: the switches form a cycle: a > b > a; one must be on top"},
           {"SwitchName=a Switches=a\n", "line 1: the switches form a cycle: a > a; one must be on top"},
           {"SwitchName=s Nodes=n\nSwitchName=a Switches=b\nSwitchName=b Switches=a\n",
            "line 2: the switches form a cycle: a > b > a; "},
           // Not the switches below a cycle.
           {"SwitchName=s Nodes=n\nSwitchName=l Nodes=m\nSwitchName=c Switches=a,l\nSwitchName=a Switches=b\n"
            "SwitchName=b Switches=c\nSwitchName=t Switches=s\n",
            "line 3: the switches form a cycle: c > a > b > c; one must be on top"},
           {[] {
              std::string ring;
              for (int i = 0; i < 10; ++i)
                ring += fmt::format("SwitchName=s{} Switches=s{}\n", i, (i + 1) % 10);
              return ring;
            }(),
            "line 1: the switches form a cycle: s0 > s1 > s2 > s3 > s4 > s5 > s6 > s7 > (2 more) > s0; "},
           {"SwitchName=s0 Nodes=a BlockName=b0\n", "SwitchName and BlockName are on one line"},
           {"SwitchName=s0 Nodes=a\nBlockName=b0 Nodes=b\n", "line 2: the file has switches and blocks"},
           {"BlockName=b0 Switches=a\n", "Switches of a block"},
           {"SwitchName=s0 Nodes=a \\", "line 1: \"\\\" continues the last line"},
           {"SwitchName=s0 Nodes=r[0-999999]n[0-999999]\n",
            "has 1000000000000 names (valid: up to 1048576 in the file)"},
           {"SwitchName=s0 Nodes=" + std::string(200, 'n') +
                "[0-299999]\nSwitchName=s1 Nodes=" + std::string(200, 'm') + "[0-99999]\n",
            "has 100000 names of 20500000 characters together (valid: up to 67108864 in the file)"},
       }) {
    const auto read = read_slurm_topology("topology.conf", text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, Code::kInvalidArgument) << text;
    EXPECT_THAT(read.error().message, StartsWith("topology.conf: line "));
    EXPECT_THAT(read.error().message, HasSubstr(words));
    EXPECT_EQ(read.error().message.find('\n'), std::string::npos);
  }
}

TEST(Slurm, TakesSwitchesWithFewerChildrenForPlacesWithoutServers) {
  for (
      const auto& [text, spec] : std::vector<std::pair<std::string, std::string>>{
          // The example of Slurm's guide.
          {"SwitchName=s0 Nodes=a[0-5]\nSwitchName=s1 Nodes=b[0-5]\nSwitchName=s2 Nodes=c[0-5]\nSwitchName=s3 Nodes=d[0-1]\n"
           "SwitchName=t Switches=s[0-3]\n",
           "leafspine:4,6[0-19]"},
          {"SwitchName=s0 Nodes=a[0-3]\nSwitchName=s1 Nodes=b[0-2]\nSwitchName=t Switches=s[1,0]\n",
           "leafspine:2,4[0-2,4-7]"},
          {"SwitchName=s0 Nodes=a\nSwitchName=s1 Switches=s2\nSwitchName=s2 Nodes=b[0-1]\nSwitchName=t "
           "Switches=s[0-1]\n",
           "leafspine:2,2[0,2-3]"},
          {"BlockName=b0 Nodes=a\nBlockName=b1 Nodes=b,c\n", "leafspine:2,2[0,2-3]"},
          {"BlockName=b0 Nodes=a,b\nBlockName=b1\nBlockName=b2 Nodes=c,d\n", "leafspine:2,2"},
          // A Fat-Tree of 4 ports without a node, and without a leaf.
          {"SwitchName=c Switches=p[0-3]\nSwitchName=p0 Switches=e[0-1]\nSwitchName=p1 Switches=e[2-3]\n"
           "SwitchName=p2 Switches=e4\nSwitchName=p3 Switches=e[6-7]\nSwitchName=e0 Nodes=a[0-1]\n"
           "SwitchName=e1 Nodes=b[0-1]\nSwitchName=e2 Nodes=c0\nSwitchName=e3 Nodes=d[0-1]\n"
           "SwitchName=e4 Nodes=e[0-1]\nSwitchName=e6 Nodes=f[0-1]\nSwitchName=e7 Nodes=g[0-1]\n",
           "fattree:4[0-4,6-9,12-15]"},
      }) {
    EXPECT_EQ(read(text).topology.spec, spec) << text;
  }
}

TEST(Slurm, SaysWhatItAssumesOfATree) {
  const ClusterTopology islands = read(
      "SwitchName=no-topology Nodes=x\nSwitchName=s0 Nodes=a[0-1]\nSwitchName=s1 Nodes=b\nSwitchName=t Switches=s[0-1]\n");
  EXPECT_EQ(islands.topology.spec, "leafspine:3,2[0,2-4]");
  EXPECT_THAT(islands.nodes, ElementsAre("x", "a0", "a1", "b"));
  EXPECT_THAT(
      islands.notes,
      ElementsAre(
          HasSubstr("line 4: SwitchName=\"t\" and \"no-topology\" are on top; assuming that a network joins"),
          HasSubstr("3 tiers of switches count as two")));
  const ClusterTopology twice =
      read("SwitchName=s0 Nodes=a[0-1]\nSwitchName=s1 Nodes=a1,b,b\nSwitchName=t Switches=s[0-1]\n");
  EXPECT_EQ(twice.topology.spec, "leafspine:2,2[0-2]");
  EXPECT_THAT(
      twice.notes,
      ElementsAre(
          "topology.conf: line 2: \"a1\" (and 1 more) occurs twice in the file; it stays where it is first"));
  const ClusterTopology three = read(
      "SwitchName=c Switches=p[0-1]\nSwitchName=p0 Switches=e[0-1]\nSwitchName=p1 Switches=e[2-3]\n"
      "SwitchName=e0 Nodes=a[0-2]\nSwitchName=e1 Nodes=b[0-2]\nSwitchName=e2 Nodes=c[0-2]\nSwitchName=e3 Nodes=d[0-2]\n");
  EXPECT_EQ(three.topology.spec, "leafspine:4,3");
  EXPECT_THAT(three.notes, ElementsAre(HasSubstr("3 tiers of switches count as two")));
}

TEST(Slurm, ReadsWhatScontrolShows) {
  const ClusterTopology shown = read(
      "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[1-2]\nSwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[3-4]\n"
      "SwitchName=top Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=s[0-1]\n");
  EXPECT_EQ(shown.topology.spec, "leafspine:2,2");
  EXPECT_THAT(
      shown.notes,
      ElementsAre(
          "topology.conf: line 1: LinkSpeed=\"1\" does not describe the wiring (and 2 more); ignored"));
  const ClusterTopology blocks = read(
      "BlockName=b1 BlockIndex=0 Nodes=n[1-2] BlockSize=2\nBlockName=b2 BlockIndex=1 Nodes=n[3-4] BlockSize=2\n");
  EXPECT_EQ(blocks.topology.spec, "leafspine:2,2");
  EXPECT_TRUE(blocks.notes.empty());
}

TEST(Slurm, AcceptsNamesOfSwitchesOfAnyKindQuotesAndAByteOrderMark) {
  const ClusterTopology slurm = read(
      "\xef\xbb\xbfSwitchName=compute:inactive Nodes=\"jpbi-[001-002]-l1-[01-02]\"\n"
      "SwitchName=rack/1@2 Nodes=c,d\nSwitchName=switch.1.12 Switches=compute:inactive,rack/1@2");
  EXPECT_EQ(slurm.topology.spec, "leafspine:2,4[0-5]");
  EXPECT_EQ(slurm.nodes[3], "jpbi-002-l1-02");
}

TEST(Slurm, AcceptsSpacesAroundTheSignAndInQuotes) {
  const ClusterTopology slurm = read(
      "SwitchName = leaf0 Nodes = \"n[0-1], n2\"\nSwitchName=leaf1\tNodes =n[3-5] LinkSpeed= 100\nSwitchName=top Switches = leaf[0-1]\n");
  EXPECT_EQ(slurm.topology.spec, "leafspine:2,3");
  EXPECT_EQ(slurm.nodes[2], "n2");
}

TEST(Slurm, ReadsALineOfManySpacesOnce) {
  EXPECT_EQ(read("SwitchName=a" + std::string(4'000'000, ' ') + "Nodes=n[0-1]" + std::string(1000, '\t'))
                .topology.spec,
            "switch:2");
}

TEST(Slurm, PassesOverLargerBlocksThatScontrolShows) {
  const ClusterTopology slurm = read(
      "BlockName=b0 BlockIndex=0 Nodes=n[0-3] BlockSize=4\nBlockName=b1 BlockIndex=1 Nodes=n[4-7] BlockSize=4\n"
      "AggregatedBlock=b[0-1] BlockIndex=2 Nodes=n[0-7] BlockSize=8\n");
  EXPECT_EQ(slurm.topology.spec, "leafspine:2,4");
}

TEST(Slurm, RecognisesATopologyYamlBehindAByteOrderMark) {
  EXPECT_TRUE(is_slurm("\xef\xbb\xbf- topology: t\n  tree:\n"));
}

TEST(Slurm, ReadsRandomTrees) {
  const std::uint64_t num_seeds = test::runs_a_sample() ? 300 : 2000;
  for (std::uint64_t seed = 0; seed < num_seeds; ++seed) {
    const RandomSlurmTree tree(test::seed() + seed);
    const auto slurm = read_slurm_topology("f", tree.text);
    ASSERT_TRUE(slurm) << slurm.error().message << "\n" << tree.text;
    const Topology& topology = slurm->topology;
    ASSERT_EQ(topology.num_servers(), static_cast<std::int64_t>(tree.num_nodes)) << tree.text;
    // Nodes of a leaf stay together, whatever the order of leaves under different tops.
    std::map<std::string, std::int64_t> place;
    for (std::size_t i = 0; i < slurm->nodes.size(); ++i)
      place[slurm->nodes[i]] = topology.whole_server(static_cast<std::int64_t>(i));
    ASSERT_EQ(place.size(), tree.num_nodes) << tree.text;
    if (topology.levels.size() < 2) continue;
    const std::int64_t room = topology.levels.front().radix;
    std::set<std::int64_t> racks;
    for (const auto& leaf : tree.leaves) {
      for (const std::string& node : leaf)
        ASSERT_EQ(place[node] / room, place[leaf.front()] / room) << topology.spec << tree.text;
      ASSERT_TRUE(racks.insert(place[leaf.front()] / room).second) << topology.spec << tree.text;
    }
  }
}

TEST(Slurm, SurvivesAnyText) {
  std::mt19937_64 random(test::seed());
  const std::vector<std::string> words = {"SwitchName=", "Switches=", "Nodes=", "BlockName=", "s0",   "s1",
                                          "n[0-1]",      ",",         " ",      "\n",         "\\\n", "#",
                                          "[",           "]",         "=",      "\xff"};
  for (int trial = 0; trial < 20'000; ++trial) {
    std::string text;
    for (std::size_t length = random() % 16; length > 0; --length) text += words[random() % words.size()];
    if (const auto read = read_slurm_topology("f", text)) {
      EXPECT_EQ(static_cast<std::size_t>(read->topology.num_servers()), read->nodes.size()) << text;
    }
  }
}

}  // namespace
}  // namespace hips::topology
