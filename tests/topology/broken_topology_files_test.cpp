#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tests/choices.hpp"
#include "tests/processor_time.hpp"
#include "tests/topology/source_files.hpp"
#include "topology/formats/parse.hpp"
#include "topology/formats/topology_file.hpp"
#include "topology/formats/yaml_tree.hpp"

// Topology files that are broken: one error each, and little time and memory.

namespace hips {
namespace {

using ::testing::HasSubstr;
using topology::parse_topology_file;

struct BadFile {
  const char* text;  ///< after the first two lines, unless it begins with "!"
  int line;
  const char* says;
};

TEST(TopologyFileTest, RejectsEveryMalformedFileInOneLineWithPlaceAndRemedy) {
  const std::vector<BadFile> cases = {
      {"!", 1, "the file is empty"},
      {"!# nothing\n", 1, "the file is empty"},
      {"!bcube:3,1\n", 1, "the file must be a mapping"},
      {"![1, 2]\n", 1, "the file must be a mapping"},
      {"!shape: bcube:3,1\n", 1, "hips-topology is missing"},
      {"!hips-topology: 2\nshape: bcube:3,1\n", 1, "hips-topology is \"2\"; it must be 1"},
      {"!hips-topology: 1\n", 1, "shape is missing"},
      {"!hips-topology: 1\nshape: bcube:3,1@25Gb\n", 2, "rates belong to rate or levels"},
      {"!hips-topology: 1\nshape: bcube:3,1/2\n", 2, "ranks to ranks-per-server"},
      {"!hips-topology: 1\nshape: t.yaml\n", 2, "the family and its numbers only"},
      {"!hips-topology: 1\nshape: file:x\n", 2, "the family and its numbers only"},
      {"!hips-topology: 1\nshape: cube:3\n", 2, "unknown family \"cube\""},
      {"!hips-topology: 1\nshape: [bcube]\n", 2, "shape is a list"},
      {"!hips-topology: 1\nshape: bcube:3\n", 2, "k is missing"},
      {"!a: b: c\n", 1, "invalid YAML"},
      {"!a: [1, 2\n", 2, "invalid YAML"},
      {"!a: {b\n", 2, "invalid YAML"},
      {"!\ta: 1\n", 1, "invalid YAML"},
      {"!a: \"b\n", 2, "invalid YAML"},
      {"!a: 1\n b: 2\n", 2, "invalid YAML"},
      {"!\xff\xfe\xfd", 1, "invalid YAML"},
      {"!a: \x01\n", 1, "invalid YAML"},
      {"!hips-topology: 1\n--- \nshape: bcube:3,1\n", 2, "second document"},
      {"hips-topology: 1\n", 3, "\"hips-topology\" occurs twice"},
      {"rate: &r 25Gb\n", 3, "anchors"},
      {"latency: *r\n", 3, "aliases"},
      {"rate: !!str 25Gb\n", 3, "tags"},
      {"? [a, b]\n: 1\n", 3, "cannot be a key"},
      {"speed: 25Gb\n", 3,
       "unknown key \"speed\"; expected hips-topology, shape, ranks-per-server, relay, rate, latency, notes, levels, "
       "servers, switches, links"},
      {"!hips-topology: 1\nshape: graph\nlinks: []\nspeed: 25Gb\n", 4,
       "unknown key \"speed\"; expected hips-topology, shape, ranks-per-server, rate, latency, notes, servers, "
       "switches, cables"},
      {"!hips-topology: 1\nspec: switch:4\n", 2, "spec is not the key of a topology; write such as shape: "},
      {"!hips-topology: 1\nshape: graph\nservers: {count: 2, names: [a, b]}\nswitches: {names: [s]}\ncables:\n"
       "- {server: a, nic: 0, switch: s}\n- {server: b, nic: 1, to: a, to-nic: 0}\n",
       7, "NIC 0 of server \"a\" has a cable already, that of line 6; a NIC has one"},
      {"rate: 25\n", 3, "rate is \"25\"; it must be from 1Mb"},
      {"rate: fast\n", 3, "rate is \"fast\""},
      {"rate: -1Gb\n", 3, "rate is \"-1Gb\""},
      {"rate: infGb\n", 3, "rate is \"infGb\""},
      {"rate: 1e9Gb\n", 3, "rate is \"1e9Gb\""},
      {"rate: 200000Gb\n", 3, "rate is \"200000Gb\""},
      {"rate: {a: 1}\n", 3, "rate is a mapping"},
      {"latency: 1\n", 3, "latency is \"1\"; it must be from 0"},
      {"latency: 11000ms\n", 3, "latency is \"11000ms\""},
      {"relay: yes\n", 3, "relay is \"yes\"; it must be true or false"},
      {"!hips-topology: 1\nshape: switch:4\nrelay: true\n", 3, "switches join all servers"},
      {"ranks-per-server: 0\n", 3, "ranks-per-server is \"0\""},
      {"ranks-per-server: 999999999\n", 3, "ranks-per-server is \"999999999\""},
      {"ranks-per-server: 2x\n", 3, "ranks-per-server is \"2x\""},
      {"levels: 2\n", 3, "levels must be a list"},
      {"levels: []\n", 3, "the list has 0 levels, but bcube:3,1 has 2"},
      {"levels: [{radix: 3}]\n", 3, "the list has 1 level, but"},
      {"levels:\n  - {radix: 3}\n  - {radix: 4}\n", 5,
       "radix is \"4\", but in bcube:3,1 this level has \"3\""},
      {"levels: [{kind: ring}, {}]\n", 3, "kind is \"ring\""},
      {"levels: [{name: x}, {}]\n", 3, "name is \"x\""},
      {"levels: [{nics: [1]}, {}]\n", 3, "nics is [1], but in bcube:3,1 NICs [0] serve level 0"},
      {"levels: [{nics: [64]}, {}]\n", 3, "the number is \"64\""},
      {"levels: [a, b]\n", 3, "a level must be a mapping"},
      {"servers: 9\n", 3, "servers must be a mapping"},
      {"servers: {count: 8}\n", 3, "8 servers, but bcube:3,1 has 9"},
      {"servers: {names: 'n[0-7]'}\n", 3, "the list has 8 names, but bcube:3,1 has 9 servers"},
      {"servers: {names: 'n[0-9]'}\n", 3, "are 10 names"},
      {"servers: {names: 'n[0-999999999]n[0-99999999]'}\n", 3, "names, but bcube:3,1 has 9 servers"},
      {"servers: {names: 'n[0-'}\n", 3, "hostlist \"n[0-\""},
      {"servers: {names: 'a,b,c,d,e,f,g,h,a'}\n", 3, "\"a\" occurs twice"},
      {"servers:\n  names:\n    - a\n    - {b: c}\n", 6, "is a mapping"},
      {"servers: {devices: [a]}\n", 3, "the list has 1 device, but a server of bcube:3,1 has 2 NICs"},
      {"servers: {devices: [a, a]}\n", 3, "device \"a\" is listed twice"},
      {"servers: {devices: a}\n", 3, "devices must be a list"},
      {"servers: {other-devices: [{server: 9, devices: [a, b]}]}\n", 3, "server is \"9\""},
      {"servers: {other-devices: [{server: 1}]}\n", 3, "needs server and devices"},
      {"servers: {other-devices: [{server: 1, devices: [a, b]}, {server: 1, devices: [a, b]}]}\n", 3,
       "twice"},
      {"switches: {count: 5}\n", 3, "5 switches, but bcube:3,1 has 6"},
      {"switches: 6\n", 3, "switches must be a mapping"},
      {"links: {}\n", 3, "links must be a list"},
      {"links: [{}]\n", 3, "needs one of server and switches"},
      {"links: [{server: 1, switches: [a, b]}]\n", 3, "needs one of server and switches"},
      {"links: [{server: 1}]\n", 3, "nic is missing"},
      {"links: [{server: n1, nic: 0}]\n", 3, "server is \"n1\"; it must be a number from 0 to 8"},
      {"links: [{server: 1, nic: 2}]\n", 3, "nic is \"2\""},
      {"links: [{server: 1, nic: -1}]\n", 3, "nic is \"-1\""},
      {"links:\n  - {server: 1, nic: 0}\n  - {server: 1, nic: 0}\n", 5, "the link is listed twice"},
      {"links: [{server: 1, nic: 0, state: broken}]\n", 3,
       "state is \"broken\"; it must be up, down or missing"},
      {"links: [{server: 1, nic: 0, cables: 2}]\n", 3, "cables is for links between switches"},
      {"levels: [{cables: 2}, {}]\n", 3, "cables is for levels with cables between switches"},
      {"switches: {names: [a]}\n", 3, "names: the list has 1 name, but bcube:3,1 has 6 switches"},
      {"switches: {names: [a, a]}\n", 3, "the switch \"a\" occurs twice"},
      {"switches: {names: [a, b, c, d, e, f], assumed: [g]}\n", 3, "unknown switch \"g\""},
      {"switches: {names: [a, b, c, d, e, \"\"], assumed: [\"\"]}\n", 3, "unknown switch \"\""},
      {"switches: {assumed: [a]}\n", 3, "unknown switch \"a\""},
      {"notes: a\n", 3, "notes must be a list"},
      {"!hips-topology: 1\nshape: leafspine:2,2\nlinks: [{switches: [leaf 0, spine 0], cables: []}]\n", 3,
       "the list of cables is empty"},
      {"!hips-topology: 1\nshape: leafspine:2,2\nlinks: [{switches: [leaf 0, spine 0], cables: 0}]\n", 3,
       "cables is \"0\""},
      {"!hips-topology: 1\nshape: leafspine:2,2\nlinks: [{switches: [leaf 0, spine 0], cables: [1Gb, 2]}]\n",
       3, "is \"2\""},
      {"!hips-topology: 1\nshape: leafspine:2,2\n"
       "links: [{switches: [leaf 0, spine 0], cables: [1Gb], rate: 1Gb}]\n",
       3, "rate follows from the list of cables"},
      {"!hips-topology: 1\nshape: leafspine:2,2\n"
       "links: [{switches: [leaf 0, spine 0], cables: 2, state: missing}]\n",
       3, "cables of a link that is missing"},
      {"links: [{server: 1, nic: 0, rate: 0Gb}]\n", 3, "rate is \"0Gb\""},
      {"links: [{server: 1, nic: 0, switch: level 0 switch 1}]\n", 3,
       "in bcube:3,1 it leads to \"level 0 switch 0\""},
      {"links: [{server: 1, nic: 0, to: 2, to-nic: 0}]\n", 3, "write switch"},
      {"links: [{switches: [a, b]}]\n", 3, "no cable between the switches \"a\" and \"b\""},
      {"links: [{switches: [a]}]\n", 3, "switches has 1 name; a cable joins two"},
      {"links: [{switches: [a, b], nic: 1}]\n", 3, "nic is for cables of servers"},
      {"!hips-topology: 1\nshape: torus:4x4\nlinks: [{server: 0, nic: 0, to: 1, to-nic: 0}]\n", 3,
       "in torus:4x4 it leads to NIC 1 of server (1,0)"},
      {"!hips-topology: 1\nshape: torus:4x4\nlinks: [{server: 0, nic: 0, to: 1}]\n", 3, "write both"},
      {"!hips-topology: 1\nshape: mesh:4x4\nlinks: [{server: 3, nic: 0, state: down}]\n", 3,
       "NIC 0 of server \"3\" is not connected in mesh:4x4: the server is at the edge"},
      {"!hips-topology: 1\nshape: torus:4x4\nlinks: [{server: 0, nic: 0, switch: a}]\n", 3,
       "write to and to-nic"},
      {"!hips-topology: 1\nshape: leafspine:2000,2000\nlinks: [{switches: [leaf 0, spine 0]}]\n", 3,
       "can be listed if there are at most 200000"},
  };
  ASSERT_GE(cases.size(), 80U);
  for (const BadFile& bad : cases) {
    const std::string text =
        bad.text[0] == '!' ? bad.text + 1 : std::string("hips-topology: 1\nshape: bcube:3,1\n") + bad.text;
    const auto file = parse_topology_file("t.yaml", text);
    ASSERT_FALSE(file) << text;
    const Status& status = file.error();
    EXPECT_EQ(status.code, Code::kInvalidArgument) << text;
    EXPECT_THAT(status.message, HasSubstr(bad.says)) << text;
    EXPECT_THAT(status.message, ::testing::StartsWith(fmt::format("t.yaml: line {}: ", bad.line))) << text;
    EXPECT_EQ(status.message.find('\n'), std::string::npos) << status.message;
    EXPECT_LT(status.message.size(), 600U) << status.message;
  }
}

TEST(TopologyFileTest, HostileTextsTakeLittleTimeAndMemory) {
  const auto began = hips::test::processor_time();
  const auto repeat = [](const std::string& text, std::size_t times) {
    std::string all;
    for (std::size_t i = 0; i < times; ++i) all += text;
    return all;
  };
  const std::size_t half = topology::kMostYamlBytes / 2;
  for (const std::string& text :
       {std::string(half, '['), std::string(half, '{'), repeat("- ", half / 2), repeat("[]\n", half / 3),
        "a: " + std::string(half, 'x'), repeat("? ", half / 2), std::string(half, '\n'),
        std::string(half, '&'), "links: [" + repeat("1,", half / 2) + "]", std::string(half, '"'),
        repeat("a: b\n ", half / 6), "a: [&a [x], " + repeat("*a, ", 1000) + "]",
        "%" + std::string(half, 'Y'), std::string(half, '\0')}) {
    const auto file = parse_topology_file("t.yaml", text);
    ASSERT_FALSE(file);
    EXPECT_LT(file.error().message.size(), 600U);
  }
  const auto large = parse_topology_file("t.yaml", std::string(topology::kMostYamlBytes + 1, '#'));
  EXPECT_THAT(large.error().message, HasSubstr("(valid: up to 16777216)"));
  EXPECT_LT(hips::test::processor_time() - began, std::chrono::seconds(30));
}

TEST(TopologyFileTest, TheReaderSurvivesAnyChangeOfAFile) {
  std::mt19937_64 random(test::seed());
  std::vector<std::string> texts;
  for (const auto& entry : std::filesystem::directory_iterator(test::source_root() / "examples/topologies"))
    texts.push_back(test::read_file(entry.path()));
  int refused = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    std::string text = texts[random() % texts.size()];
    for (std::uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, 1 + random() % 9);
          break;
        case 2:
          text.insert(at, text.substr(random() % text.size(), random() % 20));
          break;
        default:
          text[at] = "[]{}:,-#&*!\"'\n 0123456789"[random() % 25];
      }
      if (text.empty()) text = "x";
    }
    const auto file = parse_topology_file("t.yaml", text);
    if (file) continue;
    ++refused;
    EXPECT_EQ(file.error().message.find('\n'), std::string::npos) << file.error().message;
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace hips
