#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/topology/samples.hpp"
#include "tools/hips/picture/dot.hpp"
#include "tools/hips/picture/svg.hpp"
#include "tools/hips/picture/tiers.hpp"

namespace hips {
namespace {

using ::testing::HasSubstr;

topology::TopologyFile file_of(const std::string& spec) {
  return value_or_throw(topology::load_topology(spec));
}

std::size_t count(const std::string& text, std::string_view word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

/// Are all tags closed in order, and is nothing between them that XML reserves?
void expect_well_formed(const std::string& xml) {
  std::vector<std::string> open;
  for (std::size_t at = 0; (at = xml.find('<', at)) != std::string::npos;) {
    const std::size_t end = xml.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = xml.substr(at + 1, end - at - 1);
    ASSERT_EQ(tag.find('<'), std::string::npos) << tag;
    if (tag.front() == '/') {
      ASSERT_FALSE(open.empty());
      ASSERT_EQ(open.back(), tag.substr(1));
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
    at = end;
  }
  EXPECT_TRUE(open.empty());
}

TEST(Picture, EveryServerSwitchAndCableOfEveryFamilyIsDrawnOnce) {
  for (const std::string& spec : tests::sample_specs()) {
    const topology::TopologyFile file = file_of(spec);
    const auto nodes = static_cast<std::size_t>(file.topology.num_servers() + file.topology.num_switches);
    const auto links = static_cast<std::size_t>(file.topology.num_links);
    const std::string dot = value_or_throw(picture::topology_dot(file));
    EXPECT_EQ(count(dot, ", shape="), nodes) << spec;
    EXPECT_EQ(count(dot, " -- "), links) << spec;
    const std::string svg = value_or_throw(picture::topology_svg(file));
    expect_well_formed(svg);
    EXPECT_EQ(count(svg, "<rect class=\"server\"") + count(svg, "<rect class=\"switch\""), nodes) << spec;
    EXPECT_EQ(count(svg, "<path class=\"cable"), links) << spec;
    // It stands alone: nothing is fetched, and nothing runs.
    EXPECT_EQ(count(svg, "href") + count(svg, "url(") + count(svg, "<script"), 0U);
    EXPECT_EQ(svg.find("nan"), std::string::npos) << spec;
  }
}

TEST(Picture, SwitchesStandByTier) {
  const auto tiers_of = [](const std::string& spec) {
    const Topology topology = parse_topology(spec);
    return picture::tiers_of(topology, topology.graph());
  };
  const auto bcube = tiers_of("bcube:3,1");
  EXPECT_EQ(std::ranges::count(bcube, 0), 9);
  EXPECT_EQ(std::ranges::count(bcube, 1), 3);
  EXPECT_EQ(std::ranges::count(bcube, 2), 3);
  const auto tree = tiers_of("fattree:4");
  EXPECT_EQ(std::ranges::count(tree, 0), 16);
  EXPECT_EQ(std::ranges::count(tree, 1), 8);
  EXPECT_EQ(std::ranges::count(tree, 2), 8);
  EXPECT_EQ(std::ranges::count(tree, 3), 4);
  EXPECT_EQ(std::ranges::count(tiers_of("rail:4,3"), 1), 3);
}

TEST(Picture, OddLinksAreMarkedAndNamesAreEscaped) {
  topology::TopologyFile file = file_of("switch:3");
  file.server_names = {"a<b", "c\"d", "e&f"};
  file.topology.overrides = {{0, 0, "", "", 1.25e9, true}, {2, 0, "", "", 12.5e9, false}};
  const std::string svg = value_or_throw(picture::topology_svg(file));
  expect_well_formed(svg);
  EXPECT_EQ(count(svg, "class=\"cable slow\""), 1U);
  EXPECT_EQ(count(svg, "class=\"cable down\""), 1U);
  EXPECT_THAT(svg, HasSubstr("a&lt;b NIC 0 - switch: 10Gb"));
  EXPECT_THAT(svg, HasSubstr(">c&quot;d<"));
  const std::string dot = value_or_throw(picture::topology_dot(file));
  EXPECT_THAT(dot, HasSubstr("label=\"c\\\"d\""));
  EXPECT_THAT(dot, HasSubstr("label=\"10Gb\""));
  EXPECT_THAT(dot, HasSubstr("style=dashed label=\"down\""));
}

TEST(Picture, WhatNobodyCouldReadIsRefused) {
  for (const auto& picture :
       {picture::topology_svg(file_of("switch:2000")), picture::topology_dot(file_of("bcube:10,5"))}) {
    ASSERT_FALSE(picture);
    EXPECT_EQ(picture.error().code, Code::kUnsupported);
    EXPECT_THAT(picture.error().message, HasSubstr("a picture has at most 2000"));
  }
}

}  // namespace
}  // namespace hips
