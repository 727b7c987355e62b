#include "topology/cabling/lldp.hpp"

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
#include "topology/wiring/recognise.hpp"

namespace hips::topology {
namespace {

using test::lines_of;
using ::testing::ElementsAre;

Cabling read_one(const std::string& name, const std::string& text) {
  const std::vector<LldpText> texts = {{name, text}};
  return value_or_throw(read_lldp(texts));
}

std::string lldp_error(const std::string& text) {
  const std::vector<LldpText> texts = {{"n1.json", text}};
  const auto read = read_lldp(texts);
  return read ? "accepted" : read.error().message;
}

/// What a host hears of one neighbour.
struct HeardCable {
  std::string interface, chassis, port, mau;
  bool is_bridge = false;
};

std::vector<HeardCable> heard_by(const Cabling& cabling, std::size_t host) {
  std::vector<HeardCable> heard;
  for (const Cable& cable : cabling.cables) {
    for (const bool swapped : {false, true}) {
      const CableEnd& near = swapped ? cable.b : cable.a;
      const CableEnd& far = swapped ? cable.a : cable.b;
      if (near.node != host) continue;
      heard.push_back({near.port, cabling.nodes[far.node].name, far.port,
                       fmt::format("{}GBaseCR4 - 100GBASE-CR4", cable.bandwidth_bytes_per_s * 8 / 1e9),
                       cabling.nodes[far.node].kind == CabledNode::Kind::kSwitch});
    }
  }
  return heard;
}

std::string json_of(const std::vector<HeardCable>& heard) {
  std::vector<std::string> entries;
  for (const HeardCable& one : heard) {
    entries.push_back(
        fmt::format(R"("{}": {{"via": "LLDP", "rid": "1", "chassis": {{"{}": {{"id": {{"type": "mac",
"value": "44:38:39:ff:00:01"}}, "mgmt-ip": ["10.0.0.1", "fe80::1"], "capability": [{{"type": "Bridge", "enabled": {}}}]}}}},
"port": {{"id": {{"type": "ifname", "value": "{}"}}, "descr": "x", "auto-negotiation": {{"current": "{}"}}}}}})",
                    one.interface, one.chassis, one.is_bridge, one.port, one.mau));
  }
  // One interface is an object, several are a list.
  if (entries.size() == 1) return fmt::format(R"({{"lldp": {{"interface": {{{}}}}}}})", entries[0]);
  return fmt::format(R"({{"lldp": {{"interface": [{{{}}}]}}}})", fmt::join(entries, "}, {"));
}

std::string json0_of(const std::vector<HeardCable>& heard) {
  std::vector<std::string> entries;
  for (const HeardCable& one : heard) {
    entries.push_back(fmt::format(
        R"({{"name": "{}", "via": "LLDP", "chassis": [{{"id": [{{"type": "mac", "value": "44:38"}}],
"name": [{{"value": "{}"}}], "capability": [{{"type": "Router", "enabled": {}}}]}}], "port": [{{"id": [{{"type": "mac",
"value": "0c:42"}}], "descr": [{{"value": "{}"}}], "auto-negotiation": [{{"current": [{{"value": "{}"}}]}}]}}]}})",
        one.interface, one.chassis, one.is_bridge, one.port, one.mau));
  }
  return fmt::format(R"({{"lldp": [{{"interface": [{}]}}]}})", fmt::join(entries, ","));
}

std::string keyvalue_of(const std::vector<HeardCable>& heard) {
  std::string text;
  for (const HeardCable& one : heard) {
    for (const std::string& field :
         {std::string("via=LLDP"), std::string("age=0 day, 00:02:13"),
          std::string("chassis.mac=44:38:39:ff:00:01"), "chassis.name=" + one.chassis,
          std::string("chassis.descr=Linux\nof several lines = 3"), std::string("chassis.mgmt-ip=10.0.0.1"),
          std::string("chassis.mgmt-ip=fe80::1"),
          std::string("chassis.Bridge.enabled=") + (one.is_bridge ? "on" : "off"), "port.ifname=" + one.port,
          "port.auto-negotiation.current=" + one.mau, std::string("vlan.vlan-id=1"),
          std::string("vlan.vlan-id=2")})
      text += "lldp." + one.interface + "." + field + "\n";
  }
  return text;
}

TEST(Lldp, MergesRandomHostsInEachForm) {
  const std::uint64_t num_seeds = test::runs_a_sample() ? 60 : 300;
  for (std::uint64_t seed = 0; seed < num_seeds; ++seed) {
    std::mt19937_64 random(test::seed() + seed);
    const Cabling fabric = test::random_fabric(random);
    std::vector<LldpText> texts;
    std::string joined, blocks;
    for (std::size_t i = 0; i < fabric.nodes.size(); ++i) {
      // Spines run nothing; leaves tell of theirs.
      if (fabric.nodes[i].name.starts_with("spine")) continue;
      const auto heard = heard_by(fabric, i);
      const std::size_t form = random() % 3;
      texts.push_back({"site/" + fabric.nodes[i].name + ".json",
                       form == 0 ? json_of(heard) : (form == 1 ? json0_of(heard) : keyvalue_of(heard))});
      ASSERT_TRUE(is_lldp(texts.back().text)) << texts.back().text;
      // As clush -b and dshbak write them; CRLF as a terminal of Windows keeps it.
      const std::string dashes(random() % 2 == 0 ? 15 : 16, '-'), end = random() % 2 == 0 ? "\n" : "\r\n";
      blocks += dashes + end + fabric.nodes[i].name + end + dashes + end + texts.back().text + end;
      std::string line;
      for (const char c : texts.back().text) {
        line += c;
        if (c == '\n') joined += fabric.nodes[i].name + ": " + line, line.clear();
      }
      if (!line.empty()) joined += fabric.nodes[i].name + ": " + line + "\n";
    }
    // Whether a host that bridges is a switch is not for this reader to say.
    Cabling expected = fabric;
    for (CabledNode& node : expected.nodes) {
      if (node.name.starts_with("leaf")) node.kind = CabledNode::Kind::kUnknown;
    }
    const auto lines = [](Cabling cabling) {
      for (CabledNode& node : cabling.nodes) {
        if (node.name.starts_with("leaf")) node.kind = CabledNode::Kind::kUnknown;
      }
      return lines_of(cabling);
    };
    ASSERT_EQ(lines(value_or_throw(read_lldp(texts))), lines_of(expected));
    ASSERT_TRUE(is_lldp(joined)) << joined;
    ASSERT_EQ(lines(read_one("all.txt", joined)), lines_of(expected)) << joined;
    ASSERT_TRUE(is_lldp(blocks)) << blocks;
    ASSERT_EQ(lines(read_one("all.txt", blocks)), lines_of(expected)) << blocks;
  }
}

/// A block as clush -b writes it.
std::string block_of(const std::string& hosts, const std::string& text) {
  return "---------------\n" + hosts + "\n---------------\n" + text;
}

TEST(Lldp, HostsThatShareABlockHaveHeardTheSame) {
  const std::string one = keyvalue_of({{"eth0", "leaf1", "swp1", "25GBaseCR", true}});
  const std::string both = keyvalue_of({{"eth0", "leaf1", "44:38", "25GBaseCR", true}});
  const std::string text = "clush: n9: exited with exit code 1\n\n" + block_of("n1", one) +
                           block_of("n[2-3] (2)", both) + block_of("n[4-5],n7", "{\n  \"lldp\": {}\n}\n") +
                           block_of("n8", "bash: lldpctl: command not found\n");
  ASSERT_TRUE(is_lldp(text));
  const Cabling cabling = read_one("all.txt", text);
  EXPECT_THAT(lines_of(cabling),
              ElementsAre("cable leaf1[44:38] n2[eth0] 25.000Gb 0ns up",
                          "cable leaf1[44:38] n3[eth0] 25.000Gb 0ns up",
                          "cable leaf1[swp1] n1[eth0] 25.000Gb 0ns up", "node leaf1 1", "node n1 0",
                          "node n2 0", "node n3 0", "node n4 0", "node n5 0", "node n7 0"));
  EXPECT_THAT(
      cabling.notes,
      ElementsAre(
          "all.txt: hosts have heard no neighbour, such as \"n4\" (3 in all)",
          "all.txt: hosts that wrote no output of lldpctl are ignored, such as clush: n9: exited with "
          "exit code 1 (2 in all)",
          "all.txt:22: ports have more than one cable, such as \"leaf1 44:38\""));
  // clush -bL writes the hosts before each line.
  std::string labelled;
  for (std::size_t at = 0; at < both.size(); at = both.find('\n', at) + 1)
    labelled += "n[2-3]: " + both.substr(at, both.find('\n', at) + 1 - at);
  EXPECT_EQ(read_one("all.txt", labelled).cables.size(), 2U);
  // Other collectors pad the labels.
  std::string padded = labelled;
  for (std::size_t at = 0; (at = padded.find("]: ", at)) != std::string::npos; at += 5)
    padded.insert(at + 3, "  ");
  EXPECT_EQ(read_one("all.txt", padded).cables.size(), 2U) << padded;
}

TEST(Lldp, TheRatesOfTwistedPairsAreKnownByTheNamesOfTheMibToo) {
  for (const auto& [mau, rate] :
       std::vector<std::pair<std::string, std::string>>{{"2p5GigT", "2.500Gb"},
                                                        {"2.5GigT", "2.500Gb"},
                                                        {"5GigT", "5.000Gb"},
                                                        {"10GigBaseCX4", "10.000Gb"},
                                                        {"1000BaseTFD", "1.000Gb"},
                                                        {"25GBaseCR", "25.000Gb"}}) {
    const Cabling cabling =
        read_one("n1.txt", block_of("n1", keyvalue_of({{"eth0", "leaf1", "swp1", mau, true}})));
    EXPECT_THAT(lines_of(cabling), ::testing::Contains("cable leaf1[swp1] n1[eth0] " + rate + " 0ns up"))
        << mau;
  }
}

TEST(Lldp, EndsBrokenBlocksWithOneLine) {
  const std::string one = keyvalue_of({{"eth0", "leaf1", "swp1", "25GBaseCR", true}});
  EXPECT_EQ(
      lldp_error(block_of("n1", one) + block_of("@rack1 (12)", one)),
      "n1.json:18: the header names 1 of 12 hosts: \"@rack1\"; let clush name each of them, without groups");
  EXPECT_THAT(lldp_error(block_of("n1", one) + block_of("n[1-]", one)),
              ::testing::StartsWith("n1.json:18: hostlist \"n[1-]\": character 5 is"));
  EXPECT_THAT(lldp_error(block_of("n[1-999999]", one)), ::testing::StartsWith("n1.json:2: "));
  EXPECT_EQ(lldp_error(block_of("n1", "{\n\"lldp\": {\n")),
            "n1.json:6: the text is no valid JSON; give the whole output of lldpctl -f json");
  EXPECT_EQ(lldp_error(block_of("n1", "bash: lldpctl: command not found\n")),
            "n1.json:1: the text is no output of lldpctl; give that of lldpctl -f json or -f keyvalue");
  EXPECT_THAT(
      lldp_error(block_of("n[1-200000]", keyvalue_of({{"eth0", std::string(1000, 'x'), "p", "", true}}))),
      ::testing::HasSubstr("bytes together (valid: up to 67108864); run clush without -b"));
}

TEST(Lldp, IgnoresManagementAndOtherProtocolsWithOneNoteEach) {
  const Cabling cabling = read_one(
      "n1.txt",
      "lldp.eth0.via=LLDP\nlldp.eth0.chassis.name=sw0\nlldp.eth0.port.ifname=mgmt3\n"
      "lldp.eth1.via=CDPv2\nlldp.eth1.chassis.name=sw1\nlldp.eth1.port.ifname=Gi0/1\n"
      "lldp.eth2.100.via=LLDP\nlldp.eth2.100.chassis.mac=44:38\nlldp.eth2.100.port.ifname=swp1\n"
      "lldp.eth3.via=LLDP\nlldp.eth3.chassis.name=sw2\nlldp.eth3.port.ifname=swp2\n"
      "lldp.eth3.via=LLDP\nlldp.eth3.chassis.name=sw3\nlldp.eth3.port.mac=0c:42\nlldp.eth3.port.descr=swp3\n");
  EXPECT_THAT(lines_of(cabling), ElementsAre("cable 44:38[swp1] n1[eth2.100] 0.000Gb 0ns up",
                                             "cable n1[eth3] sw2[swp2] 0.000Gb 0ns up",
                                             "cable n1[eth3] sw3[swp3] 0.000Gb 0ns up", "node 44:38 2",
                                             "node n1 0", "node sw2 2", "node sw3 2"));
  EXPECT_THAT(cabling.notes, ElementsAre("n1.txt:1: neighbours on management ports are ignored",
                                         "n1.txt:4: neighbours of other protocols are ignored",
                                         "n1.txt:13: ports have more than one cable, such as \"n1 eth3\""));
}

TEST(Lldp, CountsTheNicsOfABondAndNotTheBond) {
  const Cabling cabling = read_one("n1", json_of({{"eth0", "leaf1", "swp1", "25GBaseCR", true},
                                                  {"eth1", "leaf2", "swp1", "25GBaseCR", true},
                                                  {"bond0", "leaf1", "swp1", "50GBaseCR", true},
                                                  {"eth0.100", "leaf1", "swp1", "25GBaseCR", true},
                                                  {"br-lan", "leaf1", "swp1", "25GBaseCR", true}}));
  ASSERT_EQ(cabling.cables.size(), 2U);
  EXPECT_EQ(cabling.cables[0].a.port, "eth0");
  EXPECT_EQ(cabling.cables[1].a.port, "eth1");
  ASSERT_EQ(cabling.notes.size(), 1U);
  EXPECT_TRUE(cabling.notes[0].ends_with(
      "neighbours on bonds, VLANs and bridges are ignored where their NICs have heard them (3 in all)"))
      << cabling.notes[0];
}

TEST(Lldp, KnowsAChassisWithoutANameByItsIdentifier) {
  const auto heard = [](const std::string& chassis) {
    return R"({"lldp": {"interface": [{"eth0": {"via": "LLDP", "chassis": )" + chassis +
           R"(, "port": {"id": {"type": "ifname", "value": "p"}}}}]}})";
  };
  const std::string id =
      R"("id": {"type": "mac", "value": "00:01"}, "capability": [{"type": "Bridge", "enabled": true}])";
  const std::vector<LldpText> texts = {{"n1", heard("{" + id + "}")},
                                       {"n2", heard("{\"leaf1\": {" + id + "}}")}};
  const Cabling cabling = value_or_throw(read_lldp(texts));
  ASSERT_EQ(cabling.nodes.size(), 3U);
  EXPECT_EQ(cabling.nodes[2].name, "leaf1");
  EXPECT_EQ(cabling.cables.size(), 2U);
}

TEST(Lldp, KnowsHostsByShortNames) {
  const std::vector<LldpText> texts = {
      {"n1", json_of({{"eth0", "n2.example.com", "eth0", "25GBaseCR", true}})},
      {"n2", json_of({{"eth0", "n1.example.com", "eth0", "25GBaseCR", true}})},
  };
  const Cabling cabling = value_or_throw(read_lldp(texts));
  EXPECT_EQ(cabling.nodes.size(), 2U);
  ASSERT_EQ(cabling.cables.size(), 1U);
  EXPECT_EQ(cabling.cables[0].bandwidth_bytes_per_s, 25e9 / 8);
}

TEST(Lldp, KnowsSwitchesThatTellTheirNeighboursByTheirPorts) {
  // Two leaves of Cumulus and SONiC hear servers, which do not bridge, a spine and a switch for management.
  std::vector<LldpText> texts;
  for (int leaf = 0; leaf < 2; ++leaf) {
    const std::string port = leaf == 0 ? "swp" : "Ethernet";
    std::vector<HeardCable> heard = {{port + "9", "spine", fmt::format("p{}", leaf), "100GBaseCR4", true},
                                     {"eth0", "oob-switch", "3", "1000BaseTFD", true}};
    for (int n = 0; n < 3; ++n)
      heard.push_back(
          {port + std::to_string(n), fmt::format("n{}", 3 * leaf + n), "eth0", "100GBaseCR4", false});
    texts.push_back({fmt::format("a{}.json", leaf), json_of(heard)});
  }
  const auto spec_of = [](const std::vector<LldpText>& some) {
    return value_or_throw(topology_of("lldp", value_or_throw(read_lldp(some)))).topology.spec;
  };
  EXPECT_EQ(spec_of({texts.front()}), "switch:3");
  EXPECT_EQ(spec_of(texts), "leafspine:2,3,1");
  const Cabling of_switches = value_or_throw(read_lldp(texts));
  EXPECT_FALSE(of_switches.heard_by_servers);
  EXPECT_EQ(of_switches.cables.size(), 8U);
  EXPECT_THAT(of_switches.notes,
              ElementsAre(::testing::HasSubstr("neighbours on management ports are ignored (2 in all)")));
  // Servers that tell theirs, too, add nothing.
  for (int n = 0; n < 6; ++n)
    texts.push_back(
        {fmt::format("n{}.json", n),
         json_of({{"eth0", fmt::format("a{}", n / 3), fmt::format("{}{}", n < 3 ? "swp" : "Ethernet", n % 3),
                   "100GBaseCR4", true}})});
  EXPECT_EQ(spec_of(texts), "leafspine:2,3,1");
}

TEST(Lldp, FilesOfOneNameAreNotOfTwoHosts) {
  const std::vector<LldpText> texts = {{"a/lldp.json", json_of({{"eth0", "leaf", "p1", "x", true}})},
                                       {"b/lldp.json", json_of({{"eth0", "leaf", "p2", "x", true}})}};
  const auto read = read_lldp(texts);
  ASSERT_FALSE(read);
  EXPECT_EQ(
      read.error().message,
      "b/lldp.json:1: the host is \"lldp\", as that of a/lldp.json; hosts have the names of their files: name "
      "each file for its host");
}

TEST(Lldp, EndsBrokenTextsWithOneLine) {
  EXPECT_EQ(lldp_error("{\n\"lldp\": {\n"),
            "n1.json:3: the text is no valid JSON; give the whole output of lldpctl -f json");
  EXPECT_EQ(lldp_error("{\n\"lldp\": {\"interface\": 1e999}}"),
            "n1.json:1: the text has a number that is too large; give the output of lldpctl -f json");
  EXPECT_EQ(lldp_error("{\"a\": 1}"),
            "n1.json:1: the text has no key \"lldp\"; give the output of lldpctl -f json");
  EXPECT_EQ(lldp_error("hello\n"),
            "n1.json:1: the text is no output of lldpctl; give that of lldpctl -f json or -f keyvalue");
  EXPECT_EQ(
      lldp_error("{\"lldp\": {}}"),
      "n1.json:1: the file has no cables: hosts have heard no neighbour, such as \"n1\"; run lldpctl where lldpd has run for a minute, with LLDP on at the switches");
  for (const char* text :
       {"{\"lldp\": [[[1]]]}", "{\"lldp\": {\"interface\": [1, {\"a\": [[]]}, {\"name\": \"x\"}]}}",
        "{\"lldp\": {\"interface\": {\"e\": {\"chassis\": {\"id\": 3}, \"port\": []}}}}"})
    EXPECT_FALSE(lldp_error(text).starts_with("accepted")) << text;
}

}  // namespace
}  // namespace hips::topology
