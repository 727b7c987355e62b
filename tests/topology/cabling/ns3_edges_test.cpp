#include "topology/cabling/ns3_edges.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
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

std::string edges_error(std::string_view text) {
  const auto read = read_ns3_edges("topology.txt", text);
  return read ? "accepted" : read.error().message;
}

TEST(Ns3Edges, ReadsRandomFabrics) {
  const std::uint64_t num_seeds = test::runs_a_sample() ? 100 : 500;
  for (std::uint64_t seed = 0; seed < num_seeds; ++seed) {
    std::mt19937_64 random(test::seed() + seed);
    Cabling fabric = test::random_fabric(random);
    std::vector<std::size_t> ports(fabric.nodes.size(), 0);
    std::string switches, links;
    std::size_t num_switches = 0;
    for (std::size_t i = 0; i < fabric.nodes.size(); ++i) {
      fabric.nodes[i].name = std::to_string(i);
      if (fabric.nodes[i].kind != CabledNode::Kind::kSwitch) continue;
      switches += fmt::format("{} ", i);
      ++num_switches;
    }
    for (Cable& cable : fabric.cables) {
      cable.a.port = std::to_string(++ports[cable.a.node]);
      cable.b.port = std::to_string(++ports[cable.b.node]);
      cable.latency_ns = 500;
      links += fmt::format("{} {} {}Gbps {} 0.000000\n", cable.a.node, cable.b.node,
                           cable.bandwidth_bytes_per_s * 8 / 1e9, random() % 2 == 0 ? "500ns" : "0.0005ms");
    }
    const std::string text = fmt::format("{} {} {}\n{}\n{}", fabric.nodes.size(), num_switches,
                                         fabric.cables.size(), switches, links);
    ASSERT_TRUE(is_ns3_edges(text)) << text;
    ASSERT_EQ(lines_of(value_or_throw(read_ns3_edges("f", text))), lines_of(fabric)) << text;
  }
}

TEST(Ns3Edges, IgnoresLinesBehindTheDeclaredNumberAsTheSimulatorDoes) {
  const Cabling cabling = value_or_throw(read_ns3_edges(
      "f", "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 25Gbps 0.5us 0\n0 1 1Gbps 1ns 0\n0 1 1Gbps 1ns 0\n"));
  EXPECT_THAT(lines_of(cabling),
              ElementsAre("cable 0[1] 2[1] 100.000Gb 1000ns up", "cable 1[1] 2[2] 25.000Gb 500ns up",
                          "node 0 0", "node 1 0", "node 2 1"));
  EXPECT_THAT(cabling.notes,
              ElementsAre("f:5: lines behind the declared number of links are ignored (2 in all)"));
}

TEST(Ns3Edges, TakesNoMemoryForNodesWithoutLinks) {
  const Cabling cabling =
      value_or_throw(read_ns3_edges("f", "250000 1 2\n9\n0 9 100Gbps 1us 0\n7 9 25Gbps 0.5us 0\n"));
  EXPECT_THAT(lines_of(cabling),
              ElementsAre("cable 0[1] 9[1] 100.000Gb 1000ns up", "cable 7[1] 9[2] 25.000Gb 500ns up",
                          "node 0 0", "node 7 0", "node 9 1"));
  EXPECT_LE(cabling.nodes.capacity(), 8U);
  EXPECT_THAT(cabling.notes, ElementsAre("f:1: nodes without links are left out (249997 in all)"));
}

TEST(Ns3Edges, RecognisesListsWhoseFirstLineIsWrong) {
  for (const char* head : {"single 6", "7 1", "7", "7 1 6 8"}) {
    const std::string text = std::string(head) + "\n6\n\n0 6 100Gbps 1000ns 0\n";
    EXPECT_TRUE(is_ns3_edges(text)) << text;
    EXPECT_EQ(
        edges_error(text),
        fmt::format("topology.txt:1: \"{}\" is not NODES SWITCHES LINKS; write three numbers such as 7 3 6",
                    head));
  }
  EXPECT_FALSE(is_ns3_edges("single 6\n0 1\n"));
  EXPECT_FALSE(is_ns3_edges("a\tb\tspeed\n1\t2\t10Gbps\n"));
  EXPECT_FALSE(is_ns3_edges("words\nn1 n2 10Gbps\n"));
}

TEST(Ns3Edges, EndsBrokenListsWithOneLine) {
  EXPECT_EQ(edges_error("3 1\n"),
            "topology.txt:1: \"3 1\" is not NODES SWITCHES LINKS; write three numbers such as 7 3 6");
  EXPECT_EQ(edges_error("3 1 1\n3\n"), "topology.txt:2: \"3\" is no node; the nodes are 0 to 2");
  EXPECT_EQ(edges_error("3 1 1\n1 2\n"),
            "topology.txt:2: more switches are named than the 1 of the first line; make them equal");
  EXPECT_EQ(edges_error("3 2 1\n2 2\n"), "topology.txt:2: switch 2 is named twice; name it once");
  EXPECT_EQ(edges_error("3 2 1\n2\n"),
            "topology.txt:2: 1 of 2 switches are named; name all of them behind the first line");
  EXPECT_EQ(edges_error("3 1 2\n2\n0 2 1Gbps 1ns 0\n"),
            "topology.txt:3: the file has 1 link, and the first line declares 2; make them equal");
  EXPECT_EQ(edges_error("3 1 1\n2\n0 2 fast 1ns 0\n"),
            "topology.txt:3: \"fast\" is no rate; write such as 100Gbps");
  EXPECT_EQ(edges_error("3 1 1\n2\n0 2 1Gbps 1 0\n"),
            "topology.txt:3: \"1\" is no delay; write such as 1000ns");
  EXPECT_EQ(
      edges_error("999999999 1 1\n2\n"),
      "topology.txt:1: 999999999 nodes and 1 link are out of range (valid: 1 to 250000 and up to 500000)");
}

}  // namespace
}  // namespace hips::topology
