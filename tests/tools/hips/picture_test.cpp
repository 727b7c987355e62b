#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lib/plan/builder.hpp"
#include "lib/plan/formats/plan_json.hpp"
#include "tests/topology/samples.hpp"
#include "tools/hips/picture/dot.hpp"
#include "tools/hips/picture/drawable.hpp"
#include "tools/hips/picture/holdings.hpp"
#include "tools/hips/picture/layout.hpp"
#include "tools/hips/picture/overview_drawing.hpp"
#include "tools/hips/picture/page.hpp"
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

/// Checks that all tags are closed in order and that text is escaped. Skips HTML's void tags and the text of
/// scripts.
void expect_well_formed(const std::string& xml) {
  std::vector<std::string> open;
  for (std::size_t at = 0; (at = xml.find('<', at)) != std::string::npos;) {
    if (xml.compare(at, 2, "<!") == 0 || xml.compare(at, 6, "<meta ") == 0 ||
        xml.compare(at, 7, "<input ") == 0) {
      at = xml.find('>', at);
      continue;
    }
    if (xml.compare(at, 7, "<script") == 0) {
      at = xml.find("</script>", at);
      ASSERT_NE(at, std::string::npos);
      at += 9;
      continue;
    }
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

/// Are servers and switches counted, because a picture of each would be too wide?
bool is_overview(const topology::TopologyFile& file) {
  return picture::needs_overview(file) ||
         picture::layout_of(file.topology, file.topology.graph()).width > picture::kMostWidth;
}

TEST(Picture, EveryServerSwitchAndCableOfEveryFamilyIsDrawnOnceUnlessThereAreTooMany) {
  std::size_t drawn = 0;
  for (const std::string& spec : tests::sample_specs()) {
    const topology::TopologyFile file = file_of(spec);
    const auto nodes = static_cast<std::size_t>(file.topology.num_servers() + file.topology.num_switches);
    const auto links = static_cast<std::size_t>(file.topology.num_links);
    const std::string dot = value_or_throw(picture::topology_dot(file));
    EXPECT_EQ(count(dot, ", shape="), nodes) << spec;
    EXPECT_EQ(count(dot, " -- "), links) << spec;
    const std::string svg = value_or_throw(picture::topology_svg(file));
    expect_well_formed(svg);
    // It is self-contained: it fetches nothing and runs no script.
    EXPECT_EQ(count(svg, "href") + count(svg, "url(") + count(svg, "<script"), 0U);
    EXPECT_EQ(svg.find("nan"), std::string::npos) << spec;
    if (is_overview(file)) continue;
    EXPECT_EQ(count(svg, "<rect class=\"server\"") + count(svg, "<rect class=\"switch\""), nodes) << spec;
    EXPECT_EQ(count(svg, "<path class=\"cable"), links) << spec;
    ++drawn;
  }
  EXPECT_GE(drawn, tests::sample_specs().size() - 5);
}

TEST(Picture, ServersOfALargeRackAreDrawnInRowsThatFitAPage) {
  for (const char* spec : {"rail:21,2", "rail:64,8", "rail:100,4/2", "rail:65,64", "rail:64,8[0-39,50]"}) {
    SCOPED_TRACE(spec);
    const Topology topology = parse_topology(spec);
    const Graph graph = topology.graph();
    const picture::PictureLayout layout = picture::layout_of(topology, graph);
    EXPECT_LT(layout.width, 1250);  // the width of a page's column
    ASSERT_EQ(layout.at.size(), graph.nodes.size());
    ASSERT_EQ(layout.paths.size(), graph.links.size());
    for (std::size_t i = 0; i < layout.at.size(); ++i) {
      const picture::Point a = layout.at[i];
      EXPECT_TRUE(a.x >= picture::kBoxWidth / 2 && a.x <= layout.width - picture::kBoxWidth / 2);
      EXPECT_TRUE(a.y >= picture::kTitleHeight && a.y <= layout.height - picture::kBoxHeight / 2);
      for (std::size_t j = 0; j < i; ++j) {
        const picture::Point b = layout.at[j];
        EXPECT_TRUE(std::abs(a.x - b.x) > picture::kBoxWidth || std::abs(a.y - b.y) > picture::kBoxHeight);
      }
    }
  }
}

/// The upper left corners of all boxes of an SVG.
std::vector<picture::Point> boxes_of(const std::string& svg) {
  std::vector<picture::Point> boxes;
  for (std::size_t at = 0; (at = svg.find("<rect class=\"server\"", at)) != std::string::npos; ++at) {
    picture::Point box;
    EXPECT_EQ(std::sscanf(svg.c_str() + at, "<rect class=\"server\" x=\"%lf\" y=\"%lf\"", &box.x, &box.y), 2);
    boxes.push_back(box);
  }
  return boxes;
}

TEST(Picture, ServersOfAPartKeepTheirPositionsInTheWhole) {
  for (const char* spec : {"torus:4x4[0,4,8]", "torus:4x4[15]", "torus:4[1,3]", "mesh:3x5[1,4,13]/2"}) {
    SCOPED_TRACE(spec);
    const topology::TopologyFile file = file_of(spec);
    const std::string svg = value_or_throw(picture::topology_svg(file));
    double width = 0, height = 0;
    const std::size_t view = svg.find("viewBox=");
    ASSERT_NE(view, std::string::npos);
    ASSERT_EQ(std::sscanf(svg.c_str() + view, "viewBox=\"0 0 %lf %lf\"", &width, &height), 2);
    const auto boxes = boxes_of(svg);
    ASSERT_EQ(boxes.size(), static_cast<std::size_t>(file.topology.num_servers()));
    for (const picture::Point box : boxes) {
      EXPECT_TRUE(box.x >= 0 && box.x + picture::kBoxWidth <= width) << box.x << " of " << width;
      EXPECT_TRUE(box.y >= 0 && box.y + picture::kBoxHeight <= height) << box.y << " of " << height;
    }
    topology::TopologyFile whole = file_of(std::string(spec).substr(0, std::string_view(spec).find('[')));
    const auto all = boxes_of(value_or_throw(picture::topology_svg(whole)));
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      const auto place = static_cast<std::size_t>(file.topology.part[i]);
      EXPECT_DOUBLE_EQ(boxes[i].x, all[place].x);
      EXPECT_DOUBLE_EQ(boxes[i].y, all[place].y);
    }
  }
  // (0,0), (0,1) and (0,2) are a column.
  const auto column = boxes_of(value_or_throw(picture::topology_svg(file_of("torus:4x4[0,4,8]"))));
  ASSERT_EQ(column.size(), 3U);
  EXPECT_DOUBLE_EQ(column[1].x, column[0].x);
  EXPECT_GT(column[1].y, column[0].y + picture::kBoxHeight);
  EXPECT_GT(column[2].y, column[1].y + picture::kBoxHeight);
}

TEST(Picture, SwitchesHaveTheTierOfTheirLevel) {
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

TEST(Picture, SlowLinksAreMarkedAndNamesAreEscaped) {
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
  // A cable that is down and slow: a second label would hide the first.
  file.topology.overrides = {{0, 0, "", "", 1.25e9, false}};
  EXPECT_EQ(count(value_or_throw(picture::topology_dot(file)), " label=\"10Gb\""), 0U);
}

/// A plan, its notes and its page.
struct Drawn {
  Plan plan;
  std::string page;
  cost::Cost cost;
};
Drawn drawn(const topology::TopologyFile& file, const std::string& algorithm) {
  const auto builder = value_or_throw(plan::make_builder(file.topology, {.algorithm = algorithm}));
  const auto cost = cost::estimate_all(file.topology, *builder, {1 << 20, 4});
  return {plan::build_all(*builder),
          value_or_throw(picture::plan_page(file, *builder, {{"topology", file.topology.spec}}, cost)), cost};
}

/// The text of a data script of the page.
std::string data_of(const std::string& page, const std::string& id) {
  const std::string begin = "<script type=\"application/json\" id=\"" + id + "\">";
  const std::size_t at = page.find(begin) + begin.size();
  return page.substr(at, page.find("</script>", at) - at);
}

TEST(Page, IsSelfContainedAndWellFormed) {
  topology::TopologyFile file = file_of("bcube:3,1");
  file.server_names = {"a<b", "c\"d", "e&f", "</script>", "@VIEW@", "node5", "node6", "node7", "node8"};
  const std::string page = drawn(file, "hips").page;
  expect_well_formed(page);
  // Nothing is fetched from anywhere.
  for (const char* word : {"http", "//cdn", "src=", "url(", "@import", "<link", "fetch(", "import "})
    EXPECT_EQ(count(page, word), 0U) << word;
  EXPECT_EQ(count(page, "href"), 1U) << "the script's own, of the plan to be saved";
  EXPECT_EQ(count(page, "</script>"), 3U);
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(page, HasSubstr("<title>hips on BCube(3,1)</title>"));
  EXPECT_EQ(count(page, "<path class=\"cable"), 18U);
  // No name of the template is left over.
  for (const char* word : {"@TITLE@", "@WIRING@", "@PLAN@", "@SCRIPT@"}) EXPECT_EQ(count(page, word), 0U);
  EXPECT_EQ(nlohmann::json::parse(data_of(page, "view"))["servers"][4], "@VIEW@");
  EXPECT_EQ(page, drawn(file, "hips").page) << "the same input gives the same page";
}

TEST(Page, ContainsThePlanAsJsonAndShowsEachOfItsMessages) {
  for (const auto& [spec, algorithm] :
       std::vector<std::pair<std::string, std::string>>{{"bcube:3,1", "hips"},
                                                        {"torus:4x3", "hips"},
                                                        {"switch:5/2", "flat-ring"},
                                                        {"bcube:3,1[0-4]", "trees"}}) {
    const topology::TopologyFile file = file_of(spec);
    const Drawn drawing = drawn(file, algorithm);
    nlohmann::ordered_json notes;
    const Plan saved = value_or_throw(plan::from_json(data_of(drawing.page, "plan"), notes));
    EXPECT_EQ(saved, drawing.plan) << spec;
    EXPECT_EQ(notes["topology"], spec);

    const auto view = nlohmann::json::parse(data_of(drawing.page, "view"));
    EXPECT_EQ(view["ranks"], drawing.plan.shape.num_ranks);
    std::vector<std::array<std::int64_t, 6>> expected, shown;
    for (const Program& program : saved.programs) {
      for (const Step& step : program.steps) {
        if (step.op == StepOp::kSend)
          expected.push_back(
              {program.rank, step.peer, step.lane, step.stage, step.dst.blocks.first, step.dst.blocks.count});
      }
    }
    for (const auto& each : view["messages"])
      shown.push_back({each[0], each[1], each[2], each[3], each[8], each[9]});
    std::ranges::sort(expected);
    std::ranges::sort(shown);
    EXPECT_EQ(shown, expected) << spec;
  }
}

TEST(Page, EveryRankHoldsAllCompleteSumsAtTheEnd) {
  for (const auto& algorithm : plan::algorithms()) {
    const std::string spec = algorithm.torus_only ? "torus:4x4" : "switch:8";
    const topology::TopologyFile file = file_of(spec);
    const auto builder = plan::make_builder(file.topology, {.algorithm = std::string(algorithm.name)});
    ASSERT_TRUE(builder) << algorithm.name << ": " << builder.error().message;
    const Plan plan = plan::build_all(**builder);
    const auto timeline = value_or_throw(cost::timeline(file.topology, plan, {1 << 16, 4}));
    const auto holdings = value_or_throw(picture::holdings(plan, timeline));
    const auto blocks = static_cast<std::size_t>(plan.shape.blocks.num_blocks);
    std::vector<std::int32_t> held(blocks * static_cast<std::size_t>(plan.shape.num_ranks), -1);
    for (const auto& each : holdings.list) {
      for (BlockIdx block = each.blocks.first; block < each.blocks.end(); ++block)
        held[static_cast<std::size_t>(each.rank) * blocks + static_cast<std::size_t>(block)] = each.sum;
    }
    for (const std::int32_t sum : held) {
      ASSERT_GE(sum, 0) << algorithm.name;
      ASSERT_EQ(holdings.sums[static_cast<std::size_t>(sum)].size(),
                static_cast<std::size_t>(plan.shape.num_ranks))
          << algorithm.name;
    }
  }
}

TEST(Page, TooManyStepsAreRejectedInOneLine) {
  const topology::TopologyFile file = file_of("switch:400");
  const auto builder = value_or_throw(plan::make_builder(file.topology, {.algorithm = "flat-mesh"}));
  const auto page = picture::plan_page(file, *builder, {}, {});
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code, Code::kUnsupported);
  EXPECT_THAT(page.error().message, HasSubstr("more than 60000 steps, the maximum of a page"));
  EXPECT_EQ(count(page.error().message, "\n"), 0U);
}

TEST(Picture, ATopologyThatIsTooLargeIsRejected) {
  for (const auto& picture :
       {picture::topology_svg(file_of("switch:100000")), picture::topology_dot(file_of("switch:2000")),
        picture::topology_dot(file_of("bcube:10,5"))}) {
    ASSERT_FALSE(picture);
    EXPECT_EQ(picture.error().code, Code::kUnsupported);
    EXPECT_THAT(picture.error().message, HasSubstr("a picture can have at most "));
  }
}

}  // namespace
}  // namespace hips
