#include "topology/cabling/dot.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/choices.hpp"
#include "tests/topology/cabling/random_cabling.hpp"
#include "tests/topology/cabling/same_cabling.hpp"

namespace hips::topology {
namespace {

using test::lines_of;
using ::testing::ElementsAre;

std::string dot_error(std::string_view text) {
  const auto read = read_dot("net.dot", text);
  return read ? "accepted" : read.error().message;
}

/// As Cumulus' tools and PTM write it, with comments in between.
std::string cumulus_dot(const Cabling& cabling, std::mt19937_64& random) {
  std::vector<std::string> statements;
  for (const CabledNode& node : cabling.nodes) {
    const bool is_switch = node.kind == CabledNode::Kind::kSwitch;
    statements.push_back(fmt::format("\"{}\" [{}=\"{}\" os=\"linux\"]", node.name,
                                     random() % 2 == 0 ? "function" : "role", is_switch ? "leaf" : "host"));
  }
  for (const Cable& cable : cabling.cables) {
    const bool swapped = random() % 2 == 0;
    const CableEnd& a = swapped ? cable.b : cable.a;
    const CableEnd& b = swapped ? cable.a : cable.b;
    statements.push_back(fmt::format(R"("{}":"{}" -- "{}":"{}" [speed={}])", cabling.nodes[a.node].name,
                                     a.port, cabling.nodes[b.node].name, b.port,
                                     cable.bandwidth_bytes_per_s * 8 / 1e6));
  }
  std::ranges::shuffle(statements, random);
  const std::vector<std::string> between = {
      "\n", ";\n", "; // x -- y\n", " # x -- y\r\n", " /* x\n -- y */ ", "\n\n"};
  std::string text =
      random() % 2 == 0 ? "graph dc1 {\n" : "// PTM\nstrict graph G {\n hostnametype=\"hostname\"\n";
  for (const std::string& statement : statements)
    text += "  " + statement + between[random() % between.size()];
  return text + "}\n";
}

/// As `hips topo --format dot` writes it.
std::string hips_dot(const Cabling& cabling) {
  std::string text =
      "graph \"fabric\" {\n  label=\"fabric\";\n  rankdir=BT;\n  node [fontname=\"sans-serif\"];\n";
  for (std::size_t i = 0; i < cabling.nodes.size(); ++i) {
    text += fmt::format("  n{} [label=\"{}\", shape={}];\n", i, cabling.nodes[i].name,
                        cabling.nodes[i].kind == CabledNode::Kind::kSwitch ? "box" : "ellipse");
  }
  text += "  { rank=same; n0; }\n";
  for (const Cable& cable : cabling.cables) {
    text += fmt::format("  n{} -- n{} [taillabel=\"{}\" headlabel=\"{}\" label=\"{}Gb\"{}];\n", cable.a.node,
                        cable.b.node, cable.a.port, cable.b.port, cable.bandwidth_bytes_per_s * 8 / 1e9,
                        cable.up ? "" : " style=dashed label=\"down\"");
  }
  return text + "}\n";
}

TEST(Dot, ReadsRandomGraphsOfEachForm) {
  const std::uint64_t num_seeds = test::runs_a_sample() ? 100 : 500;
  for (std::uint64_t seed = 0; seed < num_seeds; ++seed) {
    std::mt19937_64 random(test::seed() + seed);
    Cabling fabric = test::random_fabric(random);
    const std::string cumulus = cumulus_dot(fabric, random);
    ASSERT_TRUE(is_dot(cumulus)) << cumulus;
    ASSERT_EQ(lines_of(value_or_throw(read_dot("f", cumulus))), lines_of(fabric)) << cumulus;
    for (Cable& cable : fabric.cables) cable.up = random() % 8 != 0;
    const std::string hips = hips_dot(fabric);
    ASSERT_TRUE(is_dot(hips)) << hips;
    const Cabling read_back = value_or_throw(read_dot("f", hips));
    ASSERT_EQ(lines_of(read_back), lines_of(fabric)) << hips;
    ASSERT_TRUE(read_back.notes.empty()) << read_back.notes.front();
  }
}

TEST(Dot, ReadsChainsDigraphsAndNamesWithoutQuotes) {
  const Cabling cabling = value_or_throw(read_dot(
      "f",
      "digraph { subgraph cluster_0 { leaf-1:swp1s0:n -> n1:eth0 -> leaf-2:swp2 } leaf-2:swp2 -> n1:eth0 [color=\"#ff0000\"] }"));
  EXPECT_THAT(lines_of(cabling), ElementsAre("cable leaf-1[swp1s0] n1[eth0] 0.000Gb 0ns up",
                                             "cable leaf-2[swp2] n1[eth0] 0.000Gb 0ns up", "node leaf-1 2",
                                             "node leaf-2 2", "node n1 2"));
  EXPECT_THAT(cabling.notes, ElementsAre("f:1: attributes of nodes and edges are ignored",
                                         "f:1: ports have more than one cable, such as \"n1 eth0\""));
}

TEST(Dot, AGroupAtTheEndOfAnEdgeHasACableOfEachNode) {
  const Cabling group = value_or_throw(read_dot(
      "net.dot",
      "graph { edge [speed=\"25G\"]; {s1 s2} -- subgraph leaves { l1:p1 -- h1; edge [rate=\"10Gb\"] l2; l2 -- h2 } -- x }"));
  std::multiset<std::string> seen;
  for (const Cable& cable : group.cables)
    seen.insert(group.nodes[cable.a.node].name + "-" + group.nodes[cable.b.node].name +
                fmt::format(" {}", cable.bandwidth_bytes_per_s * 8e-9));
  EXPECT_THAT(seen, testing::UnorderedElementsAre("l1-h1 25", "l2-h2 10", "s1-l1 25", "s1-h1 25", "s1-l2 25",
                                                  "s1-h2 25", "s2-l1 25", "s2-h1 25", "s2-l2 25", "s2-h2 25",
                                                  "l1-x 25", "h1-x 25", "l2-x 25", "h2-x 25"));
}

TEST(Dot, AttributesOfManyEdgesAreReadOnce) {
  // For each edge they would take minutes.
  std::string a, b, attributes;
  for (int i = 0; i < 700; ++i) a += fmt::format(" a{}", i), b += fmt::format(" b{}", i);
  for (int i = 0; i < 2000; ++i) attributes += fmt::format(" x{}=1", i);
  const Cabling all = value_or_throw(
      read_dot("net.dot", fmt::format("graph {{ {{{}}} -- {{{}}} [speed=10G{}] }}", a, b, attributes)));
  EXPECT_EQ(all.cables.size(), 490'000U);
  EXPECT_DOUBLE_EQ(all.cables.back().bandwidth_bytes_per_s, 1.25e9);
}

TEST(Dot, EndsBrokenGraphsWithOneLine) {
  EXPECT_EQ(dot_error("graph {\n a:b -- ;\n}"),
            "net.dot:2: \";\" is unexpected; expected the name of a node");
  EXPECT_EQ(dot_error("graph {\n a -- b"), "net.dot:2: the end of the file is unexpected; expected \"}\"");
  EXPECT_EQ(dot_error("graph {\n \"a -- b\n}"),
            "net.dot:2: a \" is missing at the end of the string; add it");
  EXPECT_EQ(dot_error("graph {\n /* a\n}"), "net.dot:2: the comment has no end; add \"*/\"");
  EXPECT_EQ(dot_error("graph {\n a: -- b\n}"),
            "net.dot:2: \"--\" is unexpected; expected the name of a port");
  EXPECT_EQ(dot_error("graph {\n a\n}"),
            R"(net.dot:1: the file has no cables; write edges such as "leaf1":"swp1" -- "spine1":"swp2")");
  EXPECT_EQ(dot_error("graph {\n" + std::string(100, '{')),
            "net.dot:2: groups are 101 deep (valid: up to 100)");
  EXPECT_EQ(dot_error("graph {\n ? }"),
            "net.dot:2: \"?\" begins no word; write names in quotes, such as \"leaf1\":\"swp1\"");
}

TEST(Dot, RecognisesNoOtherTexts) {
  for (const char* text :
       {"", "graph", "graph:\n  - a\n", "SwitchName=s0 Nodes=n[0-3]\n", "\"graph\" {", "{\"graph\": 1}"})
    EXPECT_FALSE(is_dot(text)) << text;
}

}  // namespace
}  // namespace hips::topology
