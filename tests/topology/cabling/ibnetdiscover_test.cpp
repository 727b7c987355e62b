#include "topology/cabling/ibnetdiscover.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/choices.hpp"
#include "tests/topology/cabling/random_cabling.hpp"
#include "tests/topology/cabling/same_cabling.hpp"
#include "topology/cabling/ib_rate.hpp"

namespace hips::topology {
namespace {

using test::lines_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

Cabling read_ib(std::string_view text) {
  return value_or_throw(read_ibnetdiscover("net.txt", text));
}

std::string ib_error(std::string_view text) {
  const auto read = read_ibnetdiscover("net.txt", text);
  return read ? "accepted" : read.error().message;
}

/// Writes a cabling as ibnetdiscover does: one adapter with one port for each NIC.
class IbWriter {
 public:
  IbWriter(const Cabling& cabling, std::mt19937_64& random) : cabling_(cabling), random_(random) {}

  /// A block for each switch and adapter, in any order, with the forms of ibdiagnet (`[1](1)`) or without.
  std::string blocks(bool ibdiagnet) {
    std::vector<std::string> blocks;
    for (std::size_t i = 0; i < cabling_.nodes.size(); ++i) {
      const CabledNode& node = cabling_.nodes[i];
      std::string lines;
      for (const Cable& cable : cabling_.cables) {
        for (const bool swapped : {false, true}) {
          const CableEnd& near = swapped ? cable.b : cable.a;
          const CableEnd& far = swapped ? cable.a : cable.b;
          if (near.node != i) continue;
          if (node.kind == CabledNode::Kind::kSwitch) {
            lines += fmt::format("[{}]{}\t\"{}\"[{}]{} \t\t# \"{}\" lid {} {}\n", near.port,
                                 ibdiagnet ? "(1)" : "", id(far), port(far), is_switch(far) ? "" : "(1f)",
                                 description(far), random_() % 99, rate(cable));
          } else {
            blocks.push_back(
                fmt::format("vendid=0x2c9\ncaguid=0x1\nCa\t1 \"{}\"\t\t# \"{}\"\n"
                            "[1](1f) \t\"{}\"[{}]\t\t# lid {} lmc 0 \"{}\" lid 4 {}\n\n",
                            id(near), description(near), id(far), far.port, random_() % 99, description(far),
                            rate(cable)));
          }
        }
      }
      if (node.kind != CabledNode::Kind::kSwitch) continue;
      // Some switches do not know their LID.
      blocks.push_back(
          fmt::format("switchguid=0x1(1)\nSwitch\t36 \"{}\"\t\t# \"{}\" enhanced port 0 lid {} lmc 0\n",
                      id({i, ""}), node.name, random_() % 2 == 0 ? "" : "7") +
          lines + "\n");
    }
    std::ranges::shuffle(blocks, random_);
    std::string text = "#\n# Topology file: generated on Thu Nov 26 06:35:46 2026\n#\n\n";
    for (const std::string& block : blocks) text += block;
    return text;
  }

  /// The report of -p.
  std::string report() {
    std::vector<std::string> lines;
    for (const Cable& cable : cabling_.cables) {
      for (const bool swapped : {false, true}) {
        const CableEnd& near = swapped ? cable.b : cable.a;
        const CableEnd& far = swapped ? cable.a : cable.b;
        const auto end = [&](const CableEnd& of) {
          return fmt::format("{} {:5} {:2} 0x{}", is_switch(of) ? "SW" : "CA", random_() % 99, port(of),
                             id(of).substr(2));
        };
        const std::string rate = ib_rate("4xEDR") == cable.bandwidth_bytes_per_s ? "4x EDR" : "4x DDR";
        lines.push_back(fmt::format("{} {} - {} ( '{}' - '{}' )\n", end(near), rate, end(far),
                                    description(near), description(far)));
      }
    }
    lines.push_back("SW     0 36 0x0000000000000000 4x ???                                    'leaf0'\n");
    std::ranges::shuffle(lines, random_);
    std::string text;
    for (const std::string& line : lines) text += line;
    return text;
  }

 private:
  bool is_switch(const CableEnd& end) const {
    return cabling_.nodes[end.node].kind == CabledNode::Kind::kSwitch;
  }
  std::string id(const CableEnd& end) const {
    if (is_switch(end)) return fmt::format("S-{:016x}", end.node);
    return fmt::format("H-{:016x}",
                       0x100000 + 64 * end.node + static_cast<std::size_t>(end.port.back() - '0'));
  }
  std::string port(const CableEnd& end) const { return is_switch(end) ? end.port : "1"; }
  std::string description(const CableEnd& end) const {
    const std::string& name = cabling_.nodes[end.node].name;
    return is_switch(end) ? name : name + " " + end.port;
  }
  static std::string rate(const Cable& cable) {
    return cable.bandwidth_bytes_per_s == ib_rate("4xEDR") ? "4xEDR" : "4xDDR";
  }

  const Cabling& cabling_;
  std::mt19937_64& random_;
};

TEST(Ibnetdiscover, ReadsRandomFabricsInEachForm) {
  const std::uint64_t num_seeds = test::runs_a_sample() ? 100 : 500;
  for (std::uint64_t seed = 0; seed < num_seeds; ++seed) {
    std::mt19937_64 random(test::seed() + seed);
    const Cabling fabric = test::random_fabric(random);
    IbWriter writer(fabric, random);
    for (std::string text : {writer.blocks(false), writer.blocks(true), writer.report()}) {
      if (random() % 4 == 0) {
        std::string windows = "\xef\xbb\xbf";
        for (const char c : text) windows += c == '\n' ? "\r\n" : std::string(1, c);
        text = windows;
      }
      if (random() % 4 == 0) {
        text = "[root@n1 ~]# ibnetdiscover\nibwarn: [161] get_abi_version: can't read ABI version\n" + text;
      }
      ASSERT_TRUE(is_ibnetdiscover(text)) << text;
      const Cabling read_back = read_ib(text);
      ASSERT_EQ(lines_of(read_back), lines_of(fabric)) << text;
      ASSERT_TRUE(read_back.notes.empty()) << read_back.notes.front() << text;
    }
  }
}

TEST(Ibnetdiscover, KnowsTheDataRatesOfAllWidthsAndSpeeds) {
  EXPECT_EQ(ib_rate("1xSDR"), 2e9 / 8);
  EXPECT_EQ(ib_rate("4xSDR"), 8e9 / 8);
  EXPECT_EQ(ib_rate("4xDDR"), 16e9 / 8);
  EXPECT_EQ(ib_rate("4xQDR"), 32e9 / 8);
  EXPECT_EQ(ib_rate("4xFDR10"), 40e9 / 8);
  EXPECT_NEAR(ib_rate("4xFDR"), 54.54e9 / 8, 1e7);
  EXPECT_EQ(ib_rate("4xEDR"), 100e9 / 8);
  EXPECT_EQ(ib_rate("4xHDR"), 200e9 / 8);
  EXPECT_EQ(ib_rate("2xHDR"), 100e9 / 8);
  EXPECT_EQ(ib_rate("4xNDR"), 400e9 / 8);
  EXPECT_EQ(ib_rate("4xXDR"), 800e9 / 8);
  EXPECT_EQ(ib_rate("12xEDR"), 300e9 / 8);
  EXPECT_EQ(ib_rate("4x???"), 0);
  EXPECT_EQ(ib_rate("3xEDR"), 0);
}

TEST(Ibnetdiscover, DropsAggregationNodesAndCablesToTheSameSwitch) {
  const Cabling cabling = read_ib(
      "Switch 41 \"S-0a\" # \"leaf\" enhanced port 0 lid 13 lmc 0\n"
      "[1] \"H-01\"[1](01) # \"n1 mlx5_0\" lid 9 4xHDR\n"
      "[2] \"H-02\"[1](02) # \"n2 mlx5_0\" lid 9 4xHDR\n"
      "[7] \"S-0a\"[8] # \"leaf\" lid 13 4xHDR\n"
      "[8] \"S-0a\"[7] # \"leaf\" lid 13 4xHDR\n"
      "[41] \"H-0b\"[1](0b) # \"Mellanox Technologies Aggregation Node\" lid 14 4xHDR\n"
      "Ca 1 \"H-01\" # \"n1 mlx5_0\"\n[1](01) \"S-0a\"[1] # lid 9 lmc 0 \"leaf\" lid 13 4xHDR\n"
      "Ca 1 \"H-02\" # \"n2 mlx5_0\"\n[1](02) \"S-0a\"[2] # lid 9 lmc 0 \"leaf\" lid 13 4xHDR\n"
      "Ca 1 \"H-0b\" # \"Mellanox Technologies Aggregation Node\"\n[1](0b) \"S-0a\"[41] # lid 9 lmc 0 \"leaf\" lid 13 4xHDR\n");
  EXPECT_THAT(lines_of(cabling), ElementsAre("cable leaf[1] n1[mlx5_0] 200.000Gb 0ns up",
                                             "cable leaf[2] n2[mlx5_0] 200.000Gb 0ns up", "node leaf 1",
                                             "node n1 0", "node n2 0"));
  EXPECT_THAT(
      cabling.notes,
      UnorderedElementsAre(
          "net.txt:11: aggregation nodes are ignored",
          "net.txt:4: cables from a node to itself are ignored, such as \"leaf 7\" to \"leaf 8\" (2 in all)"));
}

TEST(Ibnetdiscover, NamesAdaptersWithoutAHostAndSwitchesOfOneNameByTheirGuids) {
  const Cabling cabling = read_ib(
      "Switch 2 \"S-0a\" # \"Quantum Mellanox Technologies\" base port 0 lid  lmc 0\n"
      "[1] \"H-01\"[1](01) # \"MT4129 ConnectX7 Mellanox Technologies\" lid 9 4xNDR\n"
      "[2] \"S-0b\"[1] # \"Quantum Mellanox Technologies\" lid 9 4x???\n"
      "Switch 2 \"S-0b\" # \"Quantum Mellanox Technologies\" base port 0 lid  lmc 0\n"
      "Ca 1 \"H-01\" # \"MT4129 ConnectX7 Mellanox Technologies\"\n");
  EXPECT_THAT(lines_of(cabling),
              ElementsAre("cable 01[1] 0a[1] 400.000Gb 0ns up", "cable 0a[2] 0b[1] 0.000Gb 0ns up",
                          "node 01 0", "node 0a 1", "node 0b 1"));
  EXPECT_THAT(
      cabling.notes,
      ElementsAre("net.txt:5: adapters do not tell their host, so each is a server named by its GUID"));
}

TEST(Ibnetdiscover, TellsPortsOfOneAdapterAndAdaptersOfOneNameApart) {
  const Cabling cabling = read_ib(
      "Switch 9 \"S-0a\" # \"leaf\" base port 0 lid 1 lmc 0\n"
      "[1] \"H-01\"[1] # \"n1 mlx4_0\" lid 9 4xQDR\n"
      "[2] \"H-01\"[2] # \"n1 mlx4_0\" lid 9 4xQDR\n"
      "[3] \"H-02\"[1] # \"n2\" lid 9 4xQDR\n"
      "[4] \"H-03\"[1] # \"n2\" lid 9 4xQDR\n");
  std::vector<std::string> ports;
  for (const Cable& cable : cabling.cables) ports.push_back(cable.b.port);
  EXPECT_THAT(ports, ElementsAre("mlx4_0:1", "mlx4_0:2", "02:1", "03:1"));
  EXPECT_EQ(cabling.nodes.size(), 3U);
}

TEST(Ibnetdiscover, ReadsTheNetFilesOfTheSimulator) {
  const Cabling cabling = read_ib(
      "# net\nSwitch 8 \"leaf1\"\n[1] \"n1\"[1]\n[2] \"n2\"[2]\n\n"
      "Hca 1 \"n1\"\n[1] \"leaf1\"[1]\n\nHca 2 \"n2\"\n[2] \"leaf1\"[2]\n");
  EXPECT_THAT(lines_of(cabling),
              ElementsAre("cable leaf1[1] n1[1] 0.000Gb 0ns up", "cable leaf1[2] n2[2] 0.000Gb 0ns up",
                          "node leaf1 1", "node n1 0", "node n2 0"));
}

TEST(Ibnetdiscover, KeepsTheLowerRateOfACableListedWithTwo) {
  const Cabling cabling = read_ib(
      "Switch 8 \"S-1\" # \"a\"\n[1] \"S-2\"[1] # \"b\" lid 1 4xEDR\n"
      "Switch 8 \"S-2\" # \"b\"\n[1] \"S-1\"[1] # \"a\" lid 1 4xDDR\n");
  ASSERT_EQ(cabling.cables.size(), 1U);
  EXPECT_EQ(cabling.cables[0].bandwidth_bytes_per_s, 2e9);
}

TEST(Ibnetdiscover, EndsBrokenTextsWithOneLine) {
  EXPECT_EQ(
      ib_error("Switch 8 \"leaf1\"\n[1] \"n1\"[1]\n"),
      "net.txt:2: a cable leads to \"n1\", which the file does not describe; add a block such as Switch 36 \"n1\"");
  EXPECT_EQ(ib_error("Switch 8 \"S-1\" # \"a\"\n[9] \"S-2\"[1] # \"b\" lid 1 4xEDR\n"),
            "net.txt:2: port [9] of \"S-1\" is out of range [0, 8]");
  EXPECT_EQ(ib_error("[1] \"S-2\"[1] # \"b\" lid 1 4xEDR\nSwitch 8 \"S-1\" # \"a\"\n"),
            "net.txt:1: port [1] belongs to no node; a line such as Switch 36 \"S-...\" must come before");
  EXPECT_EQ(ib_error("Switch 8 \"S-1\" # \"a\"\n[1] \"S-2[1]\n"),
            "net.txt:2: \"[1] \\\"S-2[1]\" is no port; write such as [1] \"S-0002c90200423cd0\"[7]");
  EXPECT_EQ(ib_error("Switch 8 \"S-1\" # \"a\"\n"),
            "net.txt:1: the file has no cables; give the whole output of ibnetdiscover, run as root");
  EXPECT_THAT(ib_error("Switch 8 \"S-1\" # \"a\"\nSwitch 9 \"S-1\" # \"a\"\n"), HasSubstr("net.txt:2: "));
}

TEST(Ibnetdiscover, RecognisesNoOtherTexts) {
  for (const char* text : {"", "SwitchName=s0 Nodes=n[0-3]\n", "graph { a -- b; }", "Switch", "Switch 8",
                           "switch,port\n1,2\n", "3 1 2\n0\n"}) {
    EXPECT_FALSE(is_ibnetdiscover(text)) << text;
  }
}

}  // namespace
}  // namespace hips::topology
