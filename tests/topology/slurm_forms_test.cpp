// Forms of Slurm's files that are no plain tree: neighbours, several spines, rails, all nodes, and files of which a job needs a part.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/choices.hpp"
#include "tests/topology/random_slurm_tree.hpp"
#include "topology/clusters/slurm.hpp"
#include "topology/formats/topology_file.hpp"

namespace hips::topology {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ClusterTopology read_form(const std::string& text, const SlurmOptions& options = {}) {
  return value_or_throw(read_slurm("t.conf", text, options));
}

TEST(SlurmForms, SpinesAboveTheSameLeavesCountAsOne) {
  const auto cluster = read_form(
      "SwitchName=s1 Switches=l[1-2] LinkSpeed=100\nSwitchName=s2 Switches=l[1-2] LinkSpeed=200\n"
      "SwitchName=s3 Switches=l[1-2]\nSwitchName=l1 Nodes=n[1-4]\nSwitchName=l2 Nodes=n[5-8]\n");
  EXPECT_EQ(cluster.topology.spec, "leafspine:2,4");
  EXPECT_THAT(
      cluster.notes,
      Contains(
          "t.conf: line 2: \"l1\" is below \"s1\" and \"s2\" (and 3 more); it counts as below the first"));
  EXPECT_THAT(cluster.notes, Not(Contains(HasSubstr("on top"))));
}

TEST(SlurmForms, SwitchesThatNameEachOtherAreNeighbours) {
  const auto cluster = read_form(
      "SwitchName=a Nodes=n[1-3] Switches=b,c\nSwitchName=b Nodes=m[1-3] Switches=a,c\n"
      "SwitchName=c Nodes=o[1-3] Switches=a,b\n");
  EXPECT_EQ(cluster.topology.spec, "leafspine:3,3");
  EXPECT_THAT(
      cluster.notes,
      Contains(HasSubstr("line 1: \"a\" and \"b\" name each other (and 2 more); taken for neighbours")));
  EXPECT_THAT(cluster.notes, Contains(HasSubstr("are on top; assuming that a network joins them")));
  EXPECT_EQ(
      read_form(
          "SwitchName=t Switches=a,b\nSwitchName=a Nodes=n[1-3] Switches=b\nSwitchName=b Nodes=m[1-3] Switches=a\n")
          .topology.spec,
      "leafspine:2,3");
}

TEST(SlurmForms, ASwitchWithoutNodesThatOthersNameBackIsAboveThem) {
  const auto cluster = read_form(
      "SwitchName=core Switches=l[1-2]\nSwitchName=l1 Nodes=n[1-2] Switches=core\n"
      "SwitchName=l2 Nodes=n[3-4] Switches=core\n");
  EXPECT_EQ(cluster.topology.spec, "leafspine:2,2");
  EXPECT_THAT(cluster.notes, IsEmpty());
}

TEST(SlurmForms, SwitchesWithTheSameNodesAreRails) {
  const auto rails =
      read_form("SwitchName=r0 Nodes=n[0-3]\nSwitchName=r1 Nodes=n[3,0-2]\nSwitchName=r2 Nodes=n[0-3]\n");
  EXPECT_EQ(rails.topology.spec, "rail:4,3");
  EXPECT_THAT(rails.nodes, ElementsAre("n0", "n1", "n2", "n3"));
  EXPECT_THAT(rails.notes, IsEmpty());
  const auto tree = read_form("SwitchName=r0 Nodes=n[0-3]\nSwitchName=r1 Nodes=n[0-2],x\n");
  EXPECT_EQ(tree.topology.spec, "leafspine:2,4[0-4]");
  EXPECT_THAT(
      tree.notes,
      Contains("t.conf: line 2: \"n0\" (and 2 more) occurs twice in the file; it stays where it is first"));
}

TEST(SlurmForms, NamesMayHaveColonsAndSlashes) {
  EXPECT_THAT(read_form("SwitchName=a Nodes=rack1/n[1-2],guid:00:a1\n").nodes,
              ElementsAre("rack1/n1", "rack1/n2", "guid:00:a1"));
}

TEST(SlurmForms, BlocksWithoutNodesAreNotedOnce) {
  const auto yaml = read_form(
      "- topology: t\n  block:\n    blocks:\n      - {block: a, nodes: \"n[0-1]\"}\n      - block: c\n      - block: d\n"
      "      - {block: b, nodes: \"n[2-3]\"}\n");
  EXPECT_EQ(yaml.topology.spec, "leafspine:2,2");
  EXPECT_THAT(yaml.notes, ElementsAre("t.conf: line 5: block: \"c\" has no nodes (and 1 more); ignored"));
}

TEST(SlurmForms, BlocksMayHaveEmptyNodes) {
  EXPECT_EQ(
      read_form(
          "BlockName=a Nodes=n[0-1]\nBlockName=p1 Nodes=\"\"\nBlockName=p2 Nodes=\nBlockName=b Nodes=n[2-3]\n")
          .topology.spec,
      "leafspine:2,2");
  EXPECT_EQ(
      read_form(
          "- topology: t\n  block:\n    blocks:\n      - {block: a, nodes: \"n[0-1]\"}\n      - {block: c, nodes: \"\"}\n"
          "      - {block: b, nodes: \"n[2-3]\"}\n")
          .topology.spec,
      "leafspine:2,2");
}

class SlurmConfBeside : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) / ("slurm_conf_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "slurm.conf") << "ClusterName=c\nNodeName=DEFAULT CPUs=2\nInclude nodes.conf\n"
                                             "NodeName = \"login[1-2]\" CPUs=4 # two\nNodeNames=no\n";
    std::ofstream(folder_ / "nodes.conf") << "nodename=n[01-03] CPUs=8\n";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  ClusterTopology read_beside(const std::string& text) {
    return value_or_throw(read_slurm_file((folder_ / "topology.conf").string(), text));
  }
  std::filesystem::path folder_;
};

TEST_F(SlurmConfBeside, IsReadOnlyWhereItIsNeeded) {
  std::ofstream(folder_ / "leaf.inc") << "SwitchName=s Nodes=ALL\n";
  EXPECT_EQ(read_beside("Include leaf.inc\n").topology.spec, "switch:5");
  std::ofstream(folder_ / "slurm.conf") << "NodeName=n[\nInclude missing.conf\n";
  EXPECT_EQ(read_beside("# ALL racks, flat\nSwitchName=HALL-1 Nodes=n[0-3]\n").topology.spec, "switch:4");
  std::ofstream(folder_ / "slurm.conf") << "NodeName=default CPUs=1\nNodeName=n[0-3]\nNodeName=n[2-5]\n";
  for (const std::string all : {"ALL", "all"})
    EXPECT_THAT(read_beside("SwitchName=s Nodes=" + all + "\n").nodes,
                ElementsAre("n0", "n1", "n2", "n3", "n4", "n5"));
  EXPECT_EQ(read_beside("SwitchName=s0 Nodes=ALL\nSwitchName=s1 Nodes=ALL\n").topology.spec, "rail:6,2");
}

TEST_F(SlurmConfBeside, GivesAllItsNodes) {
  EXPECT_THAT(read_beside("SwitchName=s Nodes=ALL\n").nodes,
              ElementsAre("n01", "n02", "n03", "login1", "login2"));
  const auto two =
      read_beside("SwitchName=a Nodes=n[01-03]\nSwitchName=b Nodes=ALL\nSwitchName=t Switches=a,b\n");
  EXPECT_EQ(two.topology.spec, "leafspine:2,3[0-4]");
  EXPECT_EQ(read_beside("- topology: t\n  flat: true\n").topology.spec, "switch:5");
  std::ofstream(folder_ / "slurm.conf") << "Odd line\nNodeName=\"n[1-2],\\\nn5\" CPUs=8 # five\n";
  EXPECT_THAT(read_beside("SwitchName=s Nodes=ALL\n").nodes, ElementsAre("n1", "n2", "n5"));
  std::ofstream(folder_ / "slurm.conf") << "NodeName=n[\n";
  const auto broken = read_slurm_file((folder_ / "topology.conf").string(), "SwitchName=s Nodes=ALL\n");
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().message, HasSubstr("slurm.conf: line 1: NodeName: hostlist"));
}

TEST(SlurmForms, AllNodesAreThoseOfTheJobWhereNothingElseIsKnown) {
  const SlurmOptions job{.all_nodes = {"n3", "n4"}};
  EXPECT_THAT(read_form("SwitchName=s Nodes=ALL\n", job).nodes, ElementsAre("n3", "n4"));
  EXPECT_EQ(read_form("- topology: t\n  flat: true\n", job).topology.spec, "switch:2");
}

TEST(SlurmForms, AJobDoesNotSufferFromWhatIsWrongElsewhere) {
  const SlurmOptions job{.job = {"n1", "n5.cluster"}};
  const std::string good =
      "SwitchName=top Switches=a,b,missing\nSwitchName=a Nodes=n[0-3]\nSwitchName=b Nodes=n[4-5]\n";
  for (const std::string bad :
       {"", "SwitchName=x Switches=y\nSwitchName=y Switches=x\n", "SwitchName=z Switches=z\n",
        "SwitchName=x Switches=y\nSwitchName=y Switches=z\nSwitchName=z Switches=x\n"}) {
    const std::string text = good + bad;
    EXPECT_FALSE(read_slurm("t.conf", text)) << text;
    EXPECT_EQ(read_form(text, job).topology.spec, "leafspine:2,4[0-5]") << text;
  }
  const std::string rings = "RingName=r0 Nodes=n[0-3]\nRingName=r1 Nodes=n[4-9]\n";
  EXPECT_EQ(read_form(rings, {.job = {"n5", "n4"}}).topology.spec, "torus:6");
  EXPECT_FALSE(read_slurm("t.conf", rings, {.job = {"n0", "n4"}}));
  const auto inside = read_slurm(
      "t.conf",
      "SwitchName=l Nodes=n1\nSwitchName=x Switches=y,l\nSwitchName=y Switches=z\nSwitchName=z Switches=x\n",
      {.job = {"n1"}});
  ASSERT_FALSE(inside);
  EXPECT_THAT(inside.error().message, HasSubstr("form a cycle"));
  const auto nowhere = read_slurm("t.conf", "SwitchName=l Nodes=n1\n", {.job = {"m1"}});
  ASSERT_FALSE(nowhere);
  EXPECT_THAT(nowhere.error().message, HasSubstr("no switch has a node of the job"));
}

TEST(SlurmForms, ATreeWhoseUpperRatesAreGivenStaysAsItIs) {
  const std::string tree =
      "SwitchName=core Switches=sp[1-3]\nSwitchName=sp1 Switches=l[1-2]\nSwitchName=sp2 Switches=l[3-5]\n"
      "SwitchName=sp3 Switches=l6\nSwitchName=l1 Nodes=n[1-5]\nSwitchName=l2 Nodes=n[6-9]\nSwitchName=l3 Nodes=n[10-16]\n"
      "SwitchName=l4 Nodes=n17\nSwitchName=l5 Nodes=n[18-19]\nSwitchName=l6 Nodes=n[20-22]\n";
  EXPECT_EQ(read_form(tree).topology.family, Family::kLeafSpine);
  EXPECT_EQ(read_form(tree, {.tier_rates = {25e8}}).topology.family, Family::kLeafSpine);
  const Topology whole = read_form(tree, {.tier_rates = {10e9, 0, 5e9}}).topology;
  EXPECT_EQ(whole.family, Family::kGraph);
  EXPECT_EQ(whole.num_servers(), 22);
  const Graph graph = whole.graph();
  double to_core = 0;
  for (const GraphLink& link : graph.links) {
    const auto& a = graph.nodes[static_cast<std::size_t>(link.a)].name;
    const auto& b = graph.nodes[static_cast<std::size_t>(link.b)].name;
    if (a == "core" || b == "core") to_core += link.bandwidth_bytes_per_s;
    if ((a == "l2" && b == "sp1") || (a == "sp1" && b == "l2")) {
      EXPECT_DOUBLE_EQ(link.bandwidth_bytes_per_s, 4 * 10e9);
    }
  }
  EXPECT_DOUBLE_EQ(to_core, 22 * 5e9);
}

TEST(SlurmForms, AJobMayHaveNamesWithDomains) {
  const std::string rings = "RingName=r1 Nodes=n1.a,n2.a,n3.a\nRingName=r2 Nodes=n1.b,n2.b,n3.b\n";
  EXPECT_THAT(read_form(rings, {.job = {"n1.b", "n2.b"}}).nodes, Contains("n1.b"));
  const auto either = read_slurm("t.conf", rings, {.job = {"n1", "n2"}});
  ASSERT_FALSE(either);
  EXPECT_THAT(either.error().message, HasSubstr("no cable joins the rings"));
  const std::string addresses = "RingName=r1 Nodes=10.0.0.[1-3]\nRingName=r2 Nodes=10.0.1.[1-3]\n";
  EXPECT_THAT(read_form(addresses, {.job = {"10.0.1.2"}}).nodes, Contains("10.0.1.2"));
}

TEST(SlurmForms, LargeFormsAreReadInLinearTime) {
  // Quadratic ones would take minutes.
  const int nodes = test::runs_a_sample() ? 20'000 : 200'000;
  const auto range = [](int from, int to) { return fmt::format("n[{}-{}]", from, to - 1); };
  EXPECT_EQ(read_form(fmt::format("SwitchName=a Nodes={}\nSwitchName=b Nodes={},{}\n", range(0, nodes),
                                  range(nodes / 2, nodes), range(0, nodes / 2)))
                .topology.num_rails,
            2);
  std::string star = fmt::format("SwitchName=A Switches=s[0-{}]\n", nodes / 2 - 1);
  std::string chain = "SwitchName=c0 Nodes=n[0-2999]\n";
  for (int i = 0; i < nodes / 2; ++i) star += "SwitchName=s" + std::to_string(i) + " Switches=A\n";
  EXPECT_FALSE(read_slurm("t.conf", star));
  for (int i = 1; i < 3000; ++i)
    chain += "SwitchName=c" + std::to_string(i) + " Switches=c" + std::to_string(i - 1) + "\n";
  const auto deep = read_slurm("t.conf", chain, {.tier_rates = {1e9, 1e9, 1e9}});
  ASSERT_FALSE(deep);
  EXPECT_THAT(deep.error().message, HasSubstr("one above the other (valid: up to 63)"));
}

TEST(SlurmForms, JobsOfRandomTreesAreReadBesideBrokenOnes) {
  for (std::uint64_t trial = 0; trial < 200; ++trial) {
    const RandomSlurmTree tree(test::seed() + trial);
    std::vector<std::string> job;
    for (const auto& leaf : tree.leaves) job.push_back(leaf.front());
    const auto cluster = read_slurm(
        "t.conf", tree.text + "SwitchName=x1 Switches=x2,none\nSwitchName=x2 Switches=x1\n", {.job = job});
    ASSERT_TRUE(cluster) << tree.text << cluster.error().message;
    for (const std::string& host : job) EXPECT_THAT(cluster->nodes, Contains(host));
  }
}

}  // namespace
}  // namespace hips::topology
