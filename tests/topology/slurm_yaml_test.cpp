#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/choices.hpp"
#include "topology/clusters/slurm.hpp"

namespace hips::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kThree = R"(---
# as sites have it
- topology: main
  cluster_default: True
  tree:
    switches:
      - switch: root
        children: s[1-2]
      - switch: s2
        nodes: node[03-04]
      - switch: s1
        nodes: node[01-02]
- topology: gpu
  cluster_default: false
  block:
    block_sizes:
      - 4
      - 16
    blocks:
    - block: b1
      nodes: g[1-2],g7
    - block: b2
      nodes: [g3, "g[4-5]"]
- topology: rest
  flat: true
)";

ClusterTopology read_one(std::string_view text, std::string_view which = "") {
  return value_or_throw(read_slurm_yaml("topology.yaml", text, {.which = std::string(which)}));
}

TEST(SlurmYaml, TheDefaultTopologyIsChosenUnlessAnotherIsNamed) {
  const ClusterTopology tree = read_one(kThree);
  EXPECT_EQ(tree.topology.spec, "leafspine:2,2");
  EXPECT_THAT(tree.nodes, ElementsAre("node01", "node02", "node03", "node04"));
  EXPECT_TRUE(tree.notes.empty());
  const ClusterTopology blocks = read_one(kThree, "gpu");
  EXPECT_EQ(blocks.topology.spec, "leafspine:2,3");
  EXPECT_THAT(blocks.nodes, ElementsAre("g1", "g2", "g7", "g3", "g4", "g5"));
  EXPECT_THAT(blocks.notes,
              ElementsAre("topology.yaml: line 16: \"block_sizes\" does not describe the wiring; ignored"));
  std::string yes = kThree;
  yes.replace(yes.find("True"), 4, "yes");
  EXPECT_EQ(read_one(yes).topology.spec, "leafspine:2,2");
  yes.replace(yes.find("yes"), 3, "ture");
  const auto misspelt = read_slurm_yaml("topology.yaml", yes, {});
  ASSERT_FALSE(misspelt);
  EXPECT_EQ(misspelt.error().message,
            "topology.yaml: line 4: cluster_default is \"ture\"; it must be true or false");
  // A single topology needs neither.
  EXPECT_EQ(
      read_one("- topology: a\n  tree: {switches: [{switch: s, nodes: 'n[1-5]', rack: 7}]}\n").topology.spec,
      "switch:5");
}

TEST(SlurmYaml, ReadsATreeLikeATopologyConf) {
  std::mt19937_64 random(test::seed());
  for (int trial = 0; trial < 200; ++trial) {
    const std::size_t leaves = 1 + random() % 5, below = 1 + random() % 5;
    std::string conf, yaml = "- topology: t\n  tree:\n    switches:\n";
    for (std::size_t leaf = 0; leaf < leaves; ++leaf) {
      const std::string name = "s" + std::to_string(leaf);
      const std::string nodes = name + "n[1-" + std::to_string(below) + "]";
      conf += "SwitchName=" + name + " Nodes=" + nodes + "\n";
      yaml += "      - switch: " + name + "\n        nodes: " + nodes + "\n";
    }
    const std::string children = "s[0-" + std::to_string(leaves - 1) + "]";
    conf += "SwitchName=top Switches=" + children + "\n";
    yaml += "      - {switch: top, children: '" + children + "'}\n";
    const ClusterTopology a = value_or_throw(read_slurm_topology("f", conf)), b = read_one(yaml);
    EXPECT_EQ(a.topology, b.topology);
    EXPECT_EQ(a.nodes, b.nodes);
  }
}

TEST(SlurmYaml, ErrorsNameFileLineKeyValueAndRemedy) {
  const std::string tree = "- topology: t\n  tree:\n    switches:\n";
  for (const auto& [text, words] : std::vector<std::pair<std::string, std::string>>{
           {"", "line 1: the file is empty"},
           {"a: b\n", "line 1: the file must be a list of topologies"},
           {"[]\n", "must be a list of topologies"},
           {"- a\n", "line 1: the topology has no name"},
           {"- tree: {}\n", "the topology has no name"},
           {"- topology: [a]\n", "topology is a list"},
           {"- topology: t\n", "expected one of tree, block, flat, ring, torus3d"},
           {"- topology: t\n  mesh: 1\n", "expected one of tree, block"},
           {"- topology: t\n  flat: true\n  tree: {}\n", "line 3: the topology has flat and tree"},
           {"- topology: a\n- topology: b\n", "choose one of \"a\", \"b\""},
           {"- topology: t\n  tree:\n", "line 2: tree has no list of switches"},
           {"- topology: t\n  tree: {switches: []}\n", "tree has no list of switches"},
           {"- topology: t\n  block: {switches: [a]}\n", "block has no list of blocks"},
           {tree + "      - a\n", "line 4: the entry has no switch"},
           {tree + "      - nodes: a\n", "the entry has no switch"},
           {tree + "      - switch: s\n",
            "line 4: switch: \"s\" has neither children nor nodes; write children:"},
           {tree + "      - {switch: s, nodes: a, children: b}\n", "has both children and nodes"},
           {tree + "      - {switch: s, nodes: 'a[2-1]'}\n",
            "nodes: hostlist \"a[2-1]\": the range 2-1 descends"},
           {tree + "      - {switch: s, nodes: {a: b}}\n", "nodes is a mapping"},
           {tree + "      - {switch: s, nodes: ''}\n", "hostlist \"\": is empty"},
           {tree + "      - {switch: 's[0-1]', nodes: a}\n", "is 2 names; give each its own entry"},
           {tree + "      - {switch: s, nodes: a}\n      - {switch: s, nodes: b}\n",
            "line 5: switch: \"s\" occurs twice; write it once, in one entry"},
           {tree + "      - {switch: t, children: s}\n", "\"s\" has no entry; add switch: s"},
           {tree + "      - {switch: a, children: a}\n", "form a cycle"},
           {tree + "      - {switch: a, nodes: x, nodes: y}\n", "\"nodes\" occurs twice"},
           {tree + "      - {switch: a, nodes: &n x}\n", "anchors"},
           {tree + "      - {switch: s, nodes: 'a[0-999999]b[0-999999]'}\n", "has 1000000000000 names"},
           {"- topology: t\n  block:\n    blocks:\n      - {block: b, children: a}\n", "children of a block"},
       }) {
    const auto read = read_slurm_yaml("topology.yaml", text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, Code::kInvalidArgument) << text;
    EXPECT_THAT(read.error().message, StartsWith("topology.yaml: line "));
    EXPECT_THAT(read.error().message, HasSubstr(words)) << text;
    EXPECT_EQ(read.error().message.find('\n'), std::string::npos);
  }
  EXPECT_THAT(read_slurm_yaml("f", kThree, {.which = "x"}).error().message,
              HasSubstr("unknown topology \"x\"; expected one of \"main\", \"gpu\", \"rest\""));
  const auto flat = read_slurm_yaml("f", "- topology: t\n  flat: true\n");
  ASSERT_FALSE(flat);
  EXPECT_THAT(flat.error().message, HasSubstr("a flat topology has all nodes of slurm.conf"));
  EXPECT_THAT(read_slurm_yaml("f", kThree, {.which = "main:r"}).error().message,
              HasSubstr("which has no units; leave \":r\" out"));
}

TEST(SlurmYaml, SurvivesAnyText) {
  std::mt19937_64 random(test::seed());
  const std::string good = kThree;
  for (int trial = 0; trial < 5000; ++trial) {
    std::string text = good;
    for (std::uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
      const std::size_t at = random() % text.size();
      if (random() % 2 == 0) {
        text[at] = "[]{}:,-#&*!'\n 019ab"[random() % 19];
      } else {
        text.erase(at, 1 + random() % 12);
      }
      if (text.empty()) text = "-";
    }
    if (const auto read = read_slurm_yaml("f", text)) {
      EXPECT_EQ(static_cast<std::size_t>(read->topology.num_servers()), read->nodes.size()) << text;
    }
  }
}

}  // namespace
}  // namespace hips::topology
