#include "topology/cabling/simgrid/simgrid.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/base/xml/xml_tree.hpp"
#include "tests/choices.hpp"
#include "tests/topology/cabling/same_cabling.hpp"
#include "topology/cabling/simgrid/simgrid_units.hpp"
#include "topology/wiring/recognise.hpp"

namespace hips::topology {
namespace {

using test::lines_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Numbers = std::vector<std::size_t>;

std::string platform(const std::string& radical, const std::string& more) {
  return fmt::format(
      "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<platform version=\"4.1\">\n"
      "<cluster id=\"c\" prefix=\"n\" radical=\"{}\" suffix=\".x\" speed=\"1Gf\" bw=\"125MBps\" lat=\"50us\" {}/>\n</platform>\n",
      radical, more);
}

std::string first_numbers(std::size_t count) {
  return fmt::format("0-{}", count - 1);
}

std::string fat_tree(const Numbers& children, const Numbers& parents, const Numbers& cables) {
  const std::size_t servers =
      std::accumulate(children.begin(), children.end(), std::size_t{1}, std::multiplies<>());
  return platform(first_numbers(servers),
                  fmt::format("topology=\"FAT_TREE\" topo_parameters=\"{};{};{};{}\"", children.size(),
                              fmt::join(children, ","), fmt::join(parents, ","), fmt::join(cables, ",")));
}

std::string torus(const Numbers& sides) {
  const std::size_t servers =
      std::accumulate(sides.begin(), sides.end(), std::size_t{1}, std::multiplies<>());
  return platform(first_numbers(servers),
                  fmt::format("topology=\"TORUS\" topo_parameters=\"{}\"", fmt::join(sides, ",")));
}

Cabling cabling_of_text(const std::string& text) {
  EXPECT_TRUE(is_simgrid(text));
  return value_or_throw(read_simgrid("p.xml", text));
}

Topology topology_of_text(const std::string& text) {
  return value_or_throw(topology_of("p.xml", cabling_of_text(text))).topology;
}

std::string simgrid_error(const std::string& text) {
  const auto read = read_simgrid("p.xml", text);
  return read ? "accepted" : read.error().message;
}

/// The labels of all nodes of a level, as SimGrid counts them.
std::vector<Numbers> labels_of(std::size_t level, const Numbers& children, const Numbers& parents) {
  std::vector<Numbers> labels{{}};
  for (std::size_t digit = 0; digit < children.size(); ++digit) {
    std::vector<Numbers> longer;
    for (std::size_t value = 0; value < (digit < level ? parents[digit] : children[digit]); ++value) {
      for (Numbers label : labels) {
        label.push_back(value);
        longer.push_back(std::move(label));
      }
    }
    labels = std::move(longer);
  }
  return labels;
}

TEST(Simgrid, TheFirstSideOfATorusIsTheOneAlongWhichNumbersAreNext) {
  // TorusZone of SimGrid: rank r is joined with r + 1 along the first side, with r + 3 along the second of "3,2".
  const ClusterTopology torus_of_six = value_or_throw(topology_of("p.xml", cabling_of_text(torus({3, 2}))));
  EXPECT_EQ(torus_of_six.topology.name, "Torus(3x2)");
  EXPECT_THAT(torus_of_six.nodes, ::testing::ElementsAre("n0.x", "n1.x", "n2.x", "n3.x", "n4.x", "n5.x"));
  std::vector<std::string> cables;
  const Cabling cabling = cabling_of_text(torus({3, 2}));
  for (const Cable& cable : cabling.cables)
    if (cable.a.node == 0) cables.push_back(cabling.nodes[cable.b.node].name);
  EXPECT_THAT(cables, ::testing::ElementsAre("n1.x", "n3.x"));
}

TEST(Simgrid, RandomFatTreesHaveTheCablesOfTheirLabels) {
  const std::uint64_t num_seeds = test::runs_a_sample() ? 60 : 300;
  for (std::uint64_t seed = 0; seed < num_seeds; ++seed) {
    std::mt19937_64 random(test::seed() + seed);
    const auto number = [&](std::size_t most) { return static_cast<std::size_t>(1 + random() % most); };
    Numbers children, parents, cables;
    for (std::size_t levels = number(3); levels > 0; --levels) {
      children.push_back(number(4));
      parents.push_back(number(3));
      cables.push_back(number(2));
    }
    // Two nodes are joined if their labels differ in the digit of their level only.
    std::vector<std::string> expected;
    for (std::size_t level = 0; level < children.size(); ++level) {
      const auto lower = labels_of(level, children, parents), upper = labels_of(level + 1, children, parents);
      for (std::size_t a = 0; a < lower.size(); ++a) {
        for (std::size_t b = 0; b < upper.size(); ++b) {
          bool are_related = true;
          for (std::size_t digit = 0; digit < children.size(); ++digit)
            if (digit != level && lower[a][digit] != upper[b][digit]) are_related = false;
          const std::string below =
              level == 0 ? fmt::format("n{}.x", a) : fmt::format("c level {} switch {}", level, a);
          for (std::size_t i = 0; are_related && i < cables[level]; ++i)
            expected.push_back(fmt::format("{} -- c level {} switch {}", below, level + 1, b));
        }
      }
    }
    const std::string text = fat_tree(children, parents, cables);
    const Cabling cabling = cabling_of_text(text);
    std::vector<std::string> seen;
    for (const Cable& cable : cabling.cables) {
      seen.push_back(cabling.nodes[cable.a.node].name + " -- " + cabling.nodes[cable.b.node].name);
      EXPECT_EQ(cable.bandwidth_bytes_per_s, 125e6);
      EXPECT_EQ(cable.latency_ns, 50'000);
    }
    std::ranges::sort(expected);
    std::ranges::sort(seen);
    ASSERT_EQ(seen, expected) << "HIPS_SEED=" << test::seed() + seed << "\n" << text;
  }
}

TEST(Simgrid, ClustersBecomeTheFamilyThatTheyAre) {
  EXPECT_EQ(topology_of_text(fat_tree({4, 4}, {1, 2}, {1, 2})).name, "Leaf-Spine(4,4,2)");
  EXPECT_EQ(topology_of_text(fat_tree({8, 3}, {1, 8}, {1, 1})).name, "Leaf-Spine(3,8,8)");
  EXPECT_EQ(topology_of_text(fat_tree({12}, {1}, {1})).name, "Switch(12)");
  EXPECT_EQ(topology_of_text(fat_tree({2, 2, 4}, {1, 2, 2}, {1, 1, 1})).name, "Fat-Tree(4)");
  EXPECT_EQ(topology_of_text(fat_tree({9}, {4}, {1})).family, Family::kRail);
  EXPECT_EQ(topology_of_text(platform("0-7", "")).name, "Switch(8)");
  EXPECT_EQ(topology_of_text(torus({4, 4})).family, Family::kTorus);
  // Rates and latencies are those of each cable; parallel ones count together.
  const Topology tree = topology_of_text(fat_tree({4, 4}, {1, 2}, {1, 2}));
  EXPECT_EQ(tree.levels[0].bandwidth_bytes_per_s, 125e6);
  EXPECT_EQ(tree.levels[1].bandwidth_bytes_per_s, 250e6);
  EXPECT_EQ(tree.levels[0].latency_ns, 50'000);
}

TEST(Simgrid, RandomToriHaveTheirServersInOrder) {
  const std::uint64_t num_seeds = test::runs_a_sample() ? 30 : 150;
  for (std::uint64_t seed = 0; seed < num_seeds; ++seed) {
    std::mt19937_64 random(test::seed() + seed);
    Numbers sides;
    std::size_t servers = 1;
    for (std::size_t dimensions = 1 + random() % 3; dimensions > 0; --dimensions) {
      sides.push_back(3 + random() % 4);
      servers *= sides.back();
    }
    const std::string text = torus(sides);
    const Cabling cabling = cabling_of_text(text);
    EXPECT_EQ(cabling.cables.size(), servers * sides.size()) << text;
    const Topology topology = value_or_throw(topology_of("p.xml", cabling)).topology;
    EXPECT_EQ(topology.family, Family::kTorus) << text;
    Numbers found;
    for (const Level& level : topology.levels) found.push_back(static_cast<std::size_t>(level.radix));
    std::ranges::sort(found);
    std::ranges::sort(sides);
    EXPECT_EQ(found, sides) << "HIPS_SEED=" << test::seed() + seed << "\n" << text;
  }
}

TEST(Simgrid, SidesOfOneAndTwoHaveTheCablesOfTheSimulator) {
  EXPECT_THAT(lines_of(cabling_of_text(torus({2, 1}))),
              ElementsAre("cable n0.x[0+] n1.x[0-] 1.000Gb 50000ns up",
                          "cable n0.x[0-] n1.x[0+] 1.000Gb 50000ns up", "node n0.x 0", "node n1.x 0"));
}

TEST(Simgrid, NamesFollowTheRadicalAndUnitsTheirPrefixes) {
  const Cabling cabling = cabling_of_text(platform("0,7-8,3", "bb_bw=\"1GBps\" sharing_policy=\"SHARED\""));
  std::vector<std::string> names;
  for (const CabledNode& node : cabling.nodes) names.push_back(node.name);
  EXPECT_THAT(names, ElementsAre("n0.x", "n7.x", "n8.x", "n3.x", "c switch"));
  EXPECT_THAT(cabling.notes,
              ::testing::UnorderedElementsAre(
                  HasSubstr("p.xml:4: bb_bw of clusters is ignored"),
                  HasSubstr("p.xml:4: sharing_policy SHARED is ignored, cables are full duplex"),
                  HasSubstr("p.xml:4: clusters without topology are one switch")));
  EXPECT_THAT(cabling_of_text(torus({3})).notes, IsEmpty());
  EXPECT_EQ(simgrid_bandwidth("125MBps"), 125e6);
  EXPECT_EQ(simgrid_bandwidth("1Gbps"), 125e6);
  EXPECT_EQ(simgrid_bandwidth("1MiBps"), 1048576);
  EXPECT_EQ(simgrid_bandwidth("1.25E8"), 125e6);
  EXPECT_EQ(simgrid_latency_ns("50us"), 50'000);
  EXPECT_EQ(simgrid_latency_ns("0"), 0);
  EXPECT_DOUBLE_EQ(*simgrid_latency_ns("5E-5"), 50'000);
  for (const char* text : {"", "fast", "1", "-1MBps", "1XBps", "1Mips", "nan", "1e300GBps", "1MBpsx"})
    EXPECT_FALSE(simgrid_bandwidth(text)) << text;
  for (const char* text : {"", "soon", "-1us", "11s", "1h", "inf"})
    EXPECT_FALSE(simgrid_latency_ns(text)) << text;
}

TEST(Simgrid, EndsWrongPlatformsWithOneLine) {
  const auto cluster = [](const std::string& more) { return simgrid_error(platform("0-15", more)); };
  EXPECT_EQ(cluster("topology=\"DRAGONFLY\" topo_parameters=\"3,4;3,2;3,1;2\""),
            "p.xml:4: topology \"DRAGONFLY\" is not supported; expected FAT_TREE, TORUS or none");
  EXPECT_EQ(
      cluster("topology=\"FAT_TREE\" topo_parameters=\"2;4,4;1,2\""),
      "p.xml:4: topo_parameters \"2;4,4;1,2\" are not LEVELS;CHILDREN;PARENTS;CABLES with a number from 1 for each of "
      "up to 16 levels; write such as 2;4,4;1,2;1,2");
  EXPECT_THAT(cluster("topology=\"FAT_TREE\" topo_parameters=\"2;4,4;0,2;1,2\""),
              HasSubstr("with a number from 1"));
  EXPECT_THAT(cluster("topology=\"FAT_TREE\" topo_parameters=\"3;4,4;1,2;1,2\""),
              HasSubstr("LEVELS;CHILDREN"));
  EXPECT_EQ(
      cluster("topology=\"FAT_TREE\" topo_parameters=\"2;4,5;1,2;1,2\""),
      "p.xml:4: topo_parameters \"2;4,5;1,2;1,2\" need 20 servers, and radical \"0-15\" has 16; make them equal");
  EXPECT_THAT(
      cluster("topology=\"FAT_TREE\" topo_parameters=\"2;4,4;999999,999999;1,1\""),
      HasSubstr("have more than 65536 switches in a level or 200000 cables; make the cluster smaller"));
  EXPECT_THAT(cluster("topology=\"FAT_TREE\" topo_parameters=\"2;4,4;1,1;1,999999999\""),
              HasSubstr("make the cluster smaller"));
  EXPECT_THAT(cluster("topology=\"TORUS\" topo_parameters=\"4,x\""),
              HasSubstr("are not the sides of up to 16 dimensions"));
  EXPECT_THAT(cluster("topology=\"TORUS\" topo_parameters=\"4000000000,4000000000\""),
              HasSubstr("need more than 65536 servers"));
  EXPECT_EQ(simgrid_error(platform("0-", "")),
            "p.xml:4: radical \"0-\" is no list of numbers and ranges; write such as 0-15 or 0-3,7");
  EXPECT_EQ(simgrid_error(platform("0-3,2", "")),
            "p.xml:4: radical \"0-3,2\" has server \"n2.x\" twice; name it once");
  EXPECT_THAT(simgrid_error(platform("0-18446744073709551615", "")), HasSubstr("more than 65536 servers"));
  EXPECT_THAT(simgrid_error("<platform/>"), HasSubstr("p.xml:1: the platform has no <cluster>; write one"));
  EXPECT_THAT(simgrid_error("<platform>\n<cluster/>\n<cluster/></platform>"),
              HasSubstr("p.xml:3: the platform has 2 clusters; leave one of them"));
  EXPECT_THAT(
      simgrid_error("<platform>\n<cluster radical=\"0-1\" bw=\"fast\" lat=\"1us\"/></platform>"),
      HasSubstr(
          "p.xml:2: bw \"fast\" is no bandwidth from 1Mbps to 100Tbps; write such as 125MBps or 1Gbps"));
  EXPECT_THAT(simgrid_error("<platform>\n<cluster"), HasSubstr("p.xml:2: "));
  EXPECT_FALSE(is_simgrid("a,b\n<platform"));
  EXPECT_FALSE(is_simgrid("<algo name=\"x\"/>"));
}

TEST(Xml, SkipsDocumentTypesWithoutDeclarationsOfTheirOwn) {
  const auto error = [](std::string_view text) {
    const auto read = read_xml(text);
    return read ? std::string("accepted") : read.error().message;
  };
  EXPECT_EQ(error("<?xml version='1.0'?>\n<!DOCTYPE a SYSTEM \"x>[\">\n<!-- c --><a/>"), "accepted");
  EXPECT_THAT(error("<!DOCTYPE a [<!ENTITY b \"c\">]>\n<a/>"), HasSubstr("with declarations of its own"));
  EXPECT_THAT(error("<!DOCTYPE a SYSTEM \"x><a/>"), HasSubstr("has no end >"));
  EXPECT_NE(error("<!DOCTYPE a><!DOCTYPE a><a/>"), "accepted");
  EXPECT_NE(error("<a/><!DOCTYPE a>"), "accepted");
}

}  // namespace
}  // namespace hips::topology
