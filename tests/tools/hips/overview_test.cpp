#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tools/hips/picture/dot.hpp"
#include "tools/hips/picture/drawable.hpp"
#include "tools/hips/picture/label.hpp"
#include "tools/hips/picture/legend.hpp"
#include "tools/hips/picture/overview.hpp"
#include "tools/hips/picture/overview_layout.hpp"
#include "tools/hips/picture/svg.hpp"
#include "topology/formats/topology_file.hpp"
#include "topology/graph_wiring.hpp"

namespace hips {
namespace {

using ::testing::HasSubstr;

topology::TopologyFile file_of(const std::string& spec) {
  return value_or_throw(topology::load_topology(spec));
}

std::string svg_of(const topology::TopologyFile& file) {
  return value_or_throw(picture::topology_svg(file));
}

std::size_t count(const std::string& text, std::string_view word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

/// Checks that each box and each text is within the view box, by the widths of common fonts.
void expect_within_view(const std::string& svg) {
  double width = 0, height = 0;
  ASSERT_EQ(std::sscanf(svg.c_str() + svg.find("viewBox="), "viewBox=\"0 0 %lf %lf\"", &width, &height), 2);
  EXPECT_LE(width, picture::kMostWidth);
  for (std::size_t at = 0; (at = svg.find("<rect class=\"s", at)) != std::string::npos; ++at) {
    double x = 0, y = 0, w = 0, h = 0;
    ASSERT_EQ(std::sscanf(svg.c_str() + at,
                          "<rect class=\"%*[a-z]\" x=\"%lf\" y=\"%lf\" width=\"%lf\" height=\"%lf\"", &x, &y,
                          &w, &h),
              4);
    EXPECT_TRUE(x >= 0 && x + w <= width && y >= 0 && y + h <= height) << svg.substr(at, 80);
  }
  for (std::size_t at = 0; (at = svg.find("<text", at)) != std::string::npos; ++at) {
    const std::size_t begin = svg.find('>', at) + 1;
    const std::string tag = svg.substr(at, begin - at),
                      text = svg.substr(begin, svg.find('<', begin) - begin);
    double x = 0, y = 0;
    ASSERT_EQ(std::sscanf(tag.c_str() + tag.find(" x="), " x=\"%lf\" y=\"%lf\"", &x, &y), 2) << tag;
    const bool title = tag.find("\"title\"") != std::string::npos,
               key = tag.find("key-text") != std::string::npos;
    const bool small = tag.find("small") != std::string::npos;
    const std::size_t letters =
        picture::num_characters(text) - 3 * count(text, "&lt;") - 3 * count(text, "&gt;");
    const double wide = static_cast<double>(letters) * (title ? 10 : key ? 6.6 : small ? 5.1 : 6.7);
    const double left = title || key ? x : x - wide / 2;
    EXPECT_TRUE(left >= 0 && left + wide <= width && y <= height) << tag << text;
  }
}

/// `leaves` switches with `each` servers and one spine, with names and rates.
topology::TopologyFile tree_of(const std::vector<std::int64_t>& leaves) {
  Graph graph;
  std::int64_t servers = 0;
  for (const std::int64_t each : leaves) servers += each;
  for (std::int64_t i = 0; i < servers; ++i) graph.nodes.push_back({false, i, ""});
  for (std::size_t i = 0; i < leaves.size(); ++i)
    graph.nodes.push_back({true, static_cast<std::int64_t>(i), fmt::format("leaf{}", i)});
  const auto spine = static_cast<std::int64_t>(graph.nodes.size());
  graph.nodes.push_back({true, static_cast<std::int64_t>(leaves.size()), "spine"});
  std::int64_t server = 0;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const std::int64_t leaf = servers + static_cast<std::int64_t>(i);
    for (std::int64_t j = 0; j < leaves[i]; ++j)
      graph.links.push_back({.a = server++, .b = leaf, .a_port = 0, .bandwidth_bytes_per_s = 12.5e9});
    graph.links.push_back({.a = leaf, .b = spine, .bandwidth_bytes_per_s = 50e9});
  }
  topology::TopologyFile file;
  file.topology = value_or_throw(topology::make_graph_topology(std::move(graph)));
  file.topology.spec = "file:tree.yaml#0";
  for (std::int64_t i = 0; i < servers; ++i) file.server_names.push_back(fmt::format("n{}", i));
  return file;
}

/// The same with changed cables.
topology::TopologyFile with_links(const topology::TopologyFile& file,
                                  const std::function<void(std::vector<GraphLink>&)>& change) {
  Graph graph = file.topology.graph();
  change(graph.links);
  topology::TopologyFile changed = file;
  changed.topology = value_or_throw(topology::make_graph_topology(std::move(graph)));
  return changed;
}

TEST(Overview, ServersAboveTheLimitAreCountsAtTheirSwitches) {
  const std::string few = svg_of(tree_of({6, 8, 4, 2}));
  EXPECT_EQ(count(few, "<rect class=\"server\""), 20U);
  EXPECT_THAT(few, HasSubstr(">n19</text>"));
  const std::string many = svg_of(tree_of({14, 6, 16, 4}));
  EXPECT_EQ(count(many, "<rect class=\"server\""), 4U);
  EXPECT_EQ(count(many, "<rect class=\"switch\""), 5U);
  for (const char* text : {">14 servers</text>", ">6 servers</text>", ">16 servers</text>",
                           ">4 servers</text>", ">leaf3</text>", ">n0 … n13</text>", ">spine</text>"})
    EXPECT_THAT(many, HasSubstr(text));
}

TEST(Overview, AThousandServersAreReadable) {
  for (const char* spec : {"fattree:16", "leafspine:40,25,8", "switch:1000", "torus:32x32", "bcube:10,2",
                           "rail:1000,8", "mesh:1000", "fattree:32"}) {
    SCOPED_TRACE(spec);
    const std::string svg = svg_of(file_of(spec));
    expect_within_view(svg);
    EXPECT_LT(svg.size(), 60'000U);
  }
  const std::string tree = svg_of(file_of("fattree:16"));
  EXPECT_EQ(count(tree, ">64 servers</text>"), 16U);
  EXPECT_EQ(count(tree, ">8 switches</text>"), 32U) << "edge and aggregation of each pod";
  EXPECT_EQ(count(tree, ">64 switches</text>"), 1U);
  EXPECT_THAT(tree, HasSubstr(">3072 cables</text>"));
  EXPECT_THAT(svg_of(file_of("leafspine:40,25,8")), HasSubstr(">25 per switch</text>"));
}

TEST(Overview, UnevenLeavesAreToldApartUntilThereAreTooMany) {
  std::vector<std::int64_t> leaves;
  for (std::int64_t i = 0; i < 30; ++i) leaves.push_back(3 + i);
  const std::string svg = svg_of(tree_of(leaves));
  for (const std::int64_t each : leaves) EXPECT_THAT(svg, HasSubstr(fmt::format(">{} servers</text>", each)));
  expect_within_view(svg);
  for (std::int64_t i = 30; i < 80; ++i) leaves.push_back(3 + i);
  const std::string ranges = svg_of(tree_of(leaves));
  EXPECT_THAT(ranges, HasSubstr(">80 switches</text>"));
  EXPECT_THAT(ranges, HasSubstr(">3 to 82 per switch</text>"));
}

TEST(Overview, SlowCablesAndThoseThatAreDownStandOutOfCounts) {
  const topology::TopologyFile healthy = tree_of({100, 100, 100});
  EXPECT_EQ(count(svg_of(healthy), "class=\"key"), 2U) << "one entry and its text";
  const std::string svg = svg_of(with_links(healthy, [](std::vector<GraphLink>& links) {
    links[7].bandwidth_bytes_per_s = 1.25e9;
    links[150].up = false;  // of a server of the second leaf
  }));
  EXPECT_EQ(count(svg, "class=\"cable slow\""), 1U);
  EXPECT_EQ(count(svg, "class=\"cable down\""), 1U);
  EXPECT_THAT(svg, HasSubstr(">slow: n7 -- leaf0 at 10Gb</text>"));
  EXPECT_THAT(svg, HasSubstr(">down: n149 -- leaf1</text>"));
  EXPECT_THAT(svg, HasSubstr(">n7</text>")) << "a server of its own";
  EXPECT_EQ(count(svg, ">99 servers</text>"), 2U);
  EXPECT_EQ(count(svg, ">100 servers</text>"), 1U);
  expect_within_view(svg);
}

TEST(Overview, EveryCableIsCountedOnceOfRandomGraphs) {
  const unsigned base = 20261126;
  for (unsigned seed = base; seed < base + 60; ++seed) {
    SCOPED_TRACE(fmt::format("HIPS_SEED={}", seed));
    std::mt19937 random(seed);
    const auto below = [&](std::size_t end) { return static_cast<std::size_t>(random() % end); };
    picture::PicturedCables in;
    const std::size_t servers = 1 + below(200), switches = 1 + below(60);
    for (std::size_t i = 0; i < servers + switches; ++i) {
      const bool is_switch = i >= servers;
      in.cabling.nodes.push_back(
          {.name = fmt::format("{}{}", is_switch ? "switch" : "a-server-with-a-long-name-", i),
           .kind = is_switch ? topology::CabledNode::Kind::kSwitch : topology::CabledNode::Kind::kServer});
      in.tiers.push_back(is_switch ? 1 + below(3) : 0);
    }
    const std::size_t cables = below(600);
    for (std::size_t i = 0; i < cables; ++i) {
      in.cabling.cables.push_back(
          {.a = {.node = below(servers + switches)}, .b = {.node = below(servers + switches)}});
      in.states.push_back(static_cast<picture::CableState>(below(20) > 2 ? 0 : below(3)));
    }
    const picture::Overview overview = picture::overview_of(in);
    std::vector<int> drawn(servers + switches, 0);
    std::vector<std::size_t> in_tier(5, 0);
    std::size_t counted = 0;
    for (const picture::OverviewBox& box : overview.boxes) {
      counted += box.inner_cables;
      ++in_tier[box.tier];
      for (const std::size_t node : box.nodes) {
        ++drawn[node];
        EXPECT_EQ(in.tiers[node], box.tier);
      }
    }
    for (const picture::OverviewCable& line : overview.cables) {
      counted += line.cables.size();
      EXPECT_NE(line.lower, line.upper);
      for (const std::size_t cable : line.cables) EXPECT_EQ(in.states[cable], line.state);
    }
    EXPECT_EQ(counted, cables);
    EXPECT_THAT(drawn, ::testing::Each(1));
    EXPECT_THAT(in_tier, ::testing::Each(::testing::Le(picture::kMostInTier)));
    const picture::OverviewLayout layout = picture::layout_of(overview);
    for (std::size_t i = 0; i < layout.at.size(); ++i) {
      const picture::Point a = layout.at[i];
      EXPECT_TRUE(a.x - layout.box_width / 2 >= 0 && a.x + layout.box_width / 2 <= layout.width) << a.x;
      for (std::size_t j = 0; j < i; ++j)
        EXPECT_TRUE(std::abs(a.x - layout.at[j].x) > layout.box_width ||
                    std::abs(a.y - layout.at[j].y) > picture::kOverviewBoxHeight);
    }
  }
}

TEST(Overview, ListedCablesAreDrawnWithTheirNamesIfTheyAreATree) {
  topology::Cabling cabling;
  for (int i = 0; i < 4; ++i)
    cabling.nodes.push_back({.name = fmt::format("n{}", i), .kind = topology::CabledNode::Kind::kServer});
  cabling.nodes.push_back({.name = "rack-a", .kind = topology::CabledNode::Kind::kSwitch});
  for (std::size_t i = 0; i < 4; ++i)
    cabling.cables.push_back({.a = {.node = i}, .b = {.node = 4}, .bandwidth_bytes_per_s = 12.5e9});
  topology::TopologyFile file = file_of("switch:4");
  file.server_names = {"n0", "n1", "n2", "n3"};
  file.cabling.value = std::make_shared<const topology::Cabling>(cabling);
  EXPECT_THAT(svg_of(file), HasSubstr(">rack-a</text>"));
  // Slurm's files do not tell the cables above the leaves.
  cabling.has_uplinks = false;
  file.cabling.value = std::make_shared<const topology::Cabling>(cabling);
  const std::string above = svg_of(file);
  EXPECT_THAT(above, HasSubstr(">switches above</text>"));
  EXPECT_THAT(above, HasSubstr(">4 cables</text>"));
  EXPECT_THAT(above, HasSubstr(">cables that the file does not tell</text>"));
  // A torus keeps its grid.
  topology::TopologyFile grid = file_of("torus:4x4x2");
  grid.cabling = file.cabling;
  EXPECT_EQ(svg_of(grid), svg_of(file_of("torus:4x4x2")));
}

TEST(Overview, CyclesOfSwitchesHaveTheTiersOfTheirDistance) {
  // The two leaves are joined too, and one of them twice to the spine.
  const topology::TopologyFile file = with_links(tree_of({3, 3}), [](std::vector<GraphLink>& links) {
    links.push_back({.a = 6, .b = 7, .bandwidth_bytes_per_s = 50e9});
    links.push_back({.a = 8, .b = 6, .bandwidth_bytes_per_s = 50e9});
  });
  expect_within_view(svg_of(file));
  EXPECT_THAT(value_or_throw(picture::topology_dot(file)),
              HasSubstr("{ rank=same; n6; n7; }\n  { rank=same; n8; }"));
}

TEST(Overview, LongNamesAreCutInTheMiddleAndLegendsToTheWidth) {
  EXPECT_EQ(picture::shortened("node-0012", 9), "node-0012");
  EXPECT_EQ(picture::shortened("node-of-rack-0012", 9), "node…0012");
  EXPECT_EQ(picture::num_characters(picture::shortened("größeäöüßgrößeäöüß", 7)), 7U);
  const std::string legend = picture::legend({.cables = 4,
                                              .slow = 1,
                                              .down = 2,
                                              .first_slow = std::string(300, 'a'),
                                              .first_down = std::string(300, 'b')},
                                             0, 520);
  EXPECT_THAT(legend, HasSubstr("slow: a"));
  EXPECT_THAT(legend, HasSubstr("…"));
  EXPECT_LT(legend.size(), 800U);
  topology::TopologyFile file = tree_of({30, 30});
  for (std::string& name : file.server_names) name = "01234567-89ab-cdef-0123-456789abcdef-" + name;
  file.topology.name = std::string(400, 'x');
  expect_within_view(svg_of(file));
}

}  // namespace
}  // namespace hips
