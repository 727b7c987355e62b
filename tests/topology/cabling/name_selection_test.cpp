#include "topology/cabling/name_selection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/topology/cabling/same_cabling.hpp"
#include "topology/cabling/dot.hpp"

namespace hips::topology {
namespace {

using test::lines_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Compute, storage and management networks in one file, without kinds.
Cabling three_networks() {
  return value_or_throw(read_dot(
      "net.dot",
      "graph { leaf1:1 -- gpu1:eth0; leaf1:2 -- gpu2:eth0; leaf1:3 -- spine1:1; leaf2:1 -- gpu3:eth0;"
      " leaf2:2 -- spine1:2; leaf2:3 -- login1:eth0; leaf2:4 -- store1:eth0; oob:1 -- leaf1:9; oob:2 -- "
      "oob2:1; }"));
}

std::vector<std::string> names_of(const Cabling& cabling, CabledNode::Kind kind) {
  std::vector<std::string> names;
  for (const CabledNode& node : cabling.nodes) {
    if (node.kind == kind) names.push_back(node.name);
  }
  return names;
}

TEST(NameSelection, KeepsHostsAndTheSwitchesThatJoinThem) {
  const Cabling chosen = value_or_throw(select_nodes(three_networks(), {.hosts = "^gpu"}));
  EXPECT_THAT(names_of(chosen, CabledNode::Kind::kServer), ElementsAre("gpu1", "gpu2", "gpu3"));
  EXPECT_THAT(names_of(chosen, CabledNode::Kind::kSwitch), ElementsAre("leaf1", "spine1", "leaf2"));
  EXPECT_EQ(chosen.cables.size(), 5U);
  EXPECT_THAT(chosen.notes, ElementsAre("4 of 10 nodes are left out by their names"));
}

TEST(NameSelection, LeavesOutWhatIsExcluded) {
  const Cabling chosen = value_or_throw(
      select_nodes(three_networks(), {.exclude = "login|store|oob", .switches = "^(leaf|spine)[0-9]+$"}));
  EXPECT_THAT(names_of(chosen, CabledNode::Kind::kServer), ElementsAre("gpu1", "gpu2", "gpu3"));
  EXPECT_THAT(names_of(chosen, CabledNode::Kind::kUnknown), ElementsAre());
}

TEST(NameSelection, KeepsWhoToldTheCables) {
  Cabling told = three_networks();
  told.heard_by_servers = true;
  told.has_uplinks = false;
  const Cabling chosen = value_or_throw(select_nodes(told, {.exclude = "oob"}));
  EXPECT_TRUE(chosen.heard_by_servers);
  EXPECT_FALSE(chosen.has_uplinks);
}

TEST(NameSelection, ChangesNothingWithoutExpressions) {
  EXPECT_EQ(lines_of(value_or_throw(select_nodes(three_networks(), {}))), lines_of(three_networks()));
}

TEST(NameSelection, EndsBadExpressionsWithOneLine) {
  const auto error = [](const NameSelection& selection) {
    const auto chosen = select_nodes(three_networks(), selection);
    return chosen ? "accepted" : chosen.error().message;
  };
  EXPECT_THAT(error({.hosts = "gpu("}), StartsWith("--hosts \"gpu(\": "));
  EXPECT_THAT(error({.exclude = "[a"}),
              HasSubstr("write an extended regular expression such as \"^gpu[0-9]+$\""));
  EXPECT_THAT(error({.switches = "(a{9}){9}"}), HasSubstr("more than one count in braces"));
  EXPECT_THAT(error({.switches = "a{1000}"}), HasSubstr("more than three digits"));
  EXPECT_THAT(error({.hosts = "(a)\\1"}), HasSubstr("references such as \\1 are not supported"));
  EXPECT_THAT(error({.hosts = std::string(2000, 'a')}), HasSubstr("longer than 1024 bytes"));
  EXPECT_THAT(error({.hosts = "^nothing$"}),
              HasSubstr("--hosts \"^nothing$\": none of 10 nodes is a server then"));
  EXPECT_THAT(error({.switches = "^nothing$"}),
              HasSubstr("--switches \"^nothing$\": none of 10 nodes is a switch then"));
}

}  // namespace
}  // namespace hips::topology
