#include "topology/cabling/containerlab.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include <fmt/format.h>

#include "tests/choices.hpp"
#include "tests/topology/cabling/random_cabling.hpp"
#include "tests/topology/cabling/same_cabling.hpp"

namespace hips::topology {
namespace {

using test::lines_of;
using ::testing::ElementsAre;

std::string lab_error(std::string_view text) {
  const auto read = read_containerlab("a.clab.yml", text);
  return read ? "accepted" : read.error().message;
}

std::string lab_text(const Cabling& cabling, std::mt19937_64& random) {
  std::string text = "# a lab\nname: lab\n\ntopology:\n  defaults:\n    kind: linux\n  nodes:\n";
  for (const CabledNode& node : cabling.nodes) {
    const bool is_switch = node.kind == CabledNode::Kind::kSwitch;
    text +=
        fmt::format("    {}:\n      {}\n", node.name, is_switch ? "kind: nokia_srlinux" : "group: servers");
  }
  text += "  links:\n";
  for (const Cable& cable : cabling.cables) {
    const std::string a = cabling.nodes[cable.a.node].name, b = cabling.nodes[cable.b.node].name;
    if (random() % 2 == 0) {
      text += fmt::format("    - endpoints: [\"{}:{}\", \"{}:{}\"]\n", a, cable.a.port, b, cable.b.port);
    } else {
      text += fmt::format(
          "    - type: veth\n      endpoints:\n      - node: {}\n        interface: \"{}\"\n"
          "      - node: {}\n        interface: \"{}\"\n",
          a, cable.a.port, b, cable.b.port);
    }
  }
  return text;
}

TEST(Containerlab, ReadsRandomLabs) {
  const std::uint64_t num_seeds = test::runs_a_sample() ? 100 : 500;
  for (std::uint64_t seed = 0; seed < num_seeds; ++seed) {
    std::mt19937_64 random(test::seed() + seed);
    Cabling fabric = test::random_fabric(random);
    for (Cable& cable : fabric.cables) cable.bandwidth_bytes_per_s = 0;
    const std::string text = lab_text(fabric, random);
    ASSERT_TRUE(is_containerlab(text)) << text;
    ASSERT_EQ(lines_of(value_or_throw(read_containerlab("f", text))), lines_of(fabric)) << text;
  }
}

TEST(Containerlab, DropsLinksThatLeadOutOfTheLab) {
  const Cabling cabling = value_or_throw(read_containerlab(
      "f",
      "topology:\n  nodes:\n    a: {kind: linux}\n    b: {kind: ceos}\n  links:\n    - endpoints: [\"a:e1\", \"b:e1\"]\n"
      "    - endpoints: [\"a:e2\", \"host:x\"]\n    - {type: mgmt-net, endpoint: {node: b, interface: e2}}\n"));
  EXPECT_THAT(lines_of(cabling), ElementsAre("cable a[e1] b[e1] 0.000Gb 0ns up", "node a 2", "node b 1"));
  EXPECT_THAT(cabling.notes, ElementsAre("f:7: links that lead out of the lab are ignored (2 in all)"));
}

TEST(Containerlab, EndsBrokenLabsWithOneLine) {
  const std::string nodes = "topology:\n  nodes:\n    a:\n    b:\n";
  EXPECT_EQ(lab_error(nodes),
            "a.clab.yml:1: topology has no links; write such as links: [{endpoints: [\"a:e1\", \"b:e1\"]}]");
  EXPECT_EQ(lab_error(nodes + "  links:\n    - endpoints: [\"a:e1\", \"c:e1\"]\n"),
            "a.clab.yml:6: the endpoint \"c:e1\" names the unknown node \"c\"; add it to nodes");
  EXPECT_EQ(lab_error(nodes + "  links:\n    - endpoints: [\"a:e1\", b]\n"),
            "a.clab.yml:6: the endpoint \"b\" is not NODE:INTERFACE, such as \"leaf1:eth1\"");
  EXPECT_EQ(lab_error(nodes + "  links:\n    - endpoints: [\"a:e1\"]\n"),
            "a.clab.yml:6: a link must have two endpoints, such as endpoints: [\"a:e1\", \"b:e1\"]");
  EXPECT_EQ(lab_error("topology:\n  links: []\n"),
            "a.clab.yml:1: topology has no nodes; write nodes: with a mapping of them");
}

}  // namespace
}  // namespace hips::topology
