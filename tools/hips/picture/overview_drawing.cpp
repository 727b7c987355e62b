#include "tools/hips/picture/overview_drawing.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "lib/base/counted.hpp"
#include "tools/hips/picture/drawable.hpp"
#include "tools/hips/picture/label.hpp"
#include "tools/hips/picture/legend.hpp"
#include "tools/hips/picture/overview_layout.hpp"
#include "tools/hips/picture/tiers.hpp"
#include "topology/health/cabling_of.hpp"
#include "topology/health/health.hpp"
#include "topology/rates.hpp"

namespace hips::picture {
namespace {

constexpr double kBoxCharacter = 6.7, kSmallCharacter = 5.1;  ///< widths of 12 px and 9 px
constexpr std::size_t kMostCountedLines = 100;                ///< with their number of cables beside them

/// Is a list of cables drawn as it is? Those of a torus, a BCube or a rail rack are clearer in the layout of their family.
bool draws_listed_cables(const topology::TopologyFile& file) {
  const Family family = file.topology.family;
  return file.cabling.value != nullptr && (family == Family::kSwitch || family == Family::kLeafSpine ||
                                           family == Family::kFatTree || family == Family::kGraph);
}

PicturedCables pictured(const topology::TopologyFile& file) {
  topology::TopologyFile drawn = file;
  if (!draws_listed_cables(file)) drawn.cabling = {};
  PicturedCables result{.cabling = topology::cabling_of(drawn)};
  topology::CableTiers tiers = topology::cable_tiers(result.cabling);
  // Of a network whose servers relay, all switches are next to servers: their levels tell them apart.
  result.relays = file.topology.servers_relay && file.topology.family == Family::kBCube;
  if (result.relays) {
    const auto levels = tiers_of(file.topology, file.topology.graph());
    tiers.of.assign(levels.begin(), levels.end());
  }
  // Slurm's files tell the switches above the leaves, but not by which cables they are joined.
  const std::size_t told = result.cabling.cables.size();
  if (!result.cabling.has_uplinks && tiers.highest > 0) {
    const std::size_t above = result.cabling.nodes.size();
    result.cabling.nodes.push_back({.name = "switches above", .kind = topology::CabledNode::Kind::kSwitch});
    for (std::size_t node = 0; node < above; ++node)
      if (tiers.of[node] == tiers.highest)
        result.cabling.cables.push_back({.a = {.node = node}, .b = {.node = above}});
    tiers.of.push_back(tiers.highest + 1);
  }
  result.tiers = tiers.of;
  result.states.resize(result.cabling.cables.size(), CableState::kUsual);
  std::fill(result.states.begin() + static_cast<std::ptrdiff_t>(told), result.states.end(),
            CableState::kAssumed);
  for (const topology::OddCable& odd : topology::odd_cables(result.cabling, tiers)) {
    const topology::Cable& cable = result.cabling.cables[odd.cable];
    if (result.states[odd.cable] == CableState::kAssumed) continue;
    if (!cable.up) {
      result.states[odd.cable] = CableState::kDown;
    } else if (cable.bandwidth_bytes_per_s > 0 && cable.bandwidth_bytes_per_s < odd.usual_bytes_per_s) {
      result.states[odd.cable] = CableState::kSlow;
    }
  }
  return result;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), std::istream_iterator<std::string>()};
}

/// What the names of several switches have in common: "pod 1 edge" of "pod 1 edge 0" and "pod 1 edge 3", "leaf" of "leaf1" and
/// "leaf2".
std::string common_name(const topology::Cabling& cabling, const std::vector<std::size_t>& nodes) {
  std::vector<std::string> common = words_of(cabling.nodes[nodes.front()].name);
  for (const std::size_t node : nodes) {
    const std::vector<std::string> words = words_of(cabling.nodes[node].name);
    common.resize(std::min(common.size(), words.size()));
    for (std::size_t i = 0; i < common.size(); ++i) {
      const auto [end, other] = std::ranges::mismatch(common[i], words[i]);
      const bool equal = end == common[i].end() && other == words[i].end();
      common[i].erase(end, common[i].end());
      const auto is_letter = [](unsigned char c) { return std::isalpha(c) != 0 || c >= 0x80; };
      while (!equal && !common[i].empty() && !is_letter(static_cast<unsigned char>(common[i].back())))
        common[i].pop_back();
    }
  }
  std::string text;
  for (const std::string& word : common)
    if (!word.empty()) text += (text.empty() ? "" : " ") + word;
  return text;
}

struct BoxText {
  std::string title, detail, tooltip;
};

BoxText text_of(const PicturedCables& in, const OverviewBox& box) {
  const std::string first = in.cabling.nodes[box.nodes.front()].name;
  if (box.nodes.size() == 1) return {first, {}, first};
  const std::string last = in.cabling.nodes[box.nodes.back()].name;
  BoxText text;
  text.title = fmt::format("{} {}", box.nodes.size(), box.is_switch ? "switches" : "servers");
  text.tooltip = fmt::format("{}: {} to {}", text.title, first, last);
  if (box.inner_cables > 0) {
    text.detail = counted(box.inner_cables, "cable");
  } else if (box.is_switch) {
    text.detail = common_name(in.cabling, box.nodes);
  } else if (box.most > 0 && box.most < box.nodes.size()) {
    text.detail = box.fewest == box.most ? fmt::format("{} per switch", box.most)
                                         : fmt::format("{} to {} per switch", box.fewest, box.most);
  }
  if (text.detail.empty() || (!box.is_switch && box.most == box.nodes.size()))
    text.detail = fmt::format("{} … {}", first, last);
  return text;
}

std::string draw_box(const BoxText& text, bool is_switch, std::size_t count, Point at, double width) {
  const auto most = [&](double character) { return static_cast<std::size_t>((width - 6) / character); };
  std::string out = fmt::format(
      "<g><title>{}</title><rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" rx=\"{}\"{}/>",
      xml_text(text.tooltip), is_switch ? "switch" : "server", at.x - width / 2,
      at.y - kOverviewBoxHeight / 2, width, kOverviewBoxHeight, is_switch ? 3 : 14,
      count > 1 ? " stroke-width=\"2\"" : "");
  const bool small = num_characters(text.title) > most(kBoxCharacter);
  out += fmt::format("<text{} x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", small ? " class=\"small\"" : "", at.x,
                     text.detail.empty() ? at.y + 4 : at.y - 2,
                     xml_text(shortened(text.title, most(small ? kSmallCharacter : kBoxCharacter))));
  if (!text.detail.empty())
    out += fmt::format("<text class=\"small\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", at.x, at.y + 11,
                       xml_text(shortened(text.detail, most(kSmallCharacter))));
  return out + "</g>\n";
}

/// "leaf3 -- n11 at 25Gb"
std::string cable_words(const PicturedCables& in, std::size_t cable) {
  const topology::Cable& one = in.cabling.cables[cable];
  std::string text =
      fmt::format("{} -- {}", in.cabling.nodes[one.a.node].name, in.cabling.nodes[one.b.node].name);
  if (one.up && one.bandwidth_bytes_per_s > 0)
    text += " at " + topology::rate_text(one.bandwidth_bytes_per_s);
  return text;
}

/// The path of a line, and where its number of cables is.
struct LineCourse {
  std::string path;
  Point count;
};

/// `tiers`: how many tiers are between the ends; `box_width`: of the boxes that the line passes.
LineCourse course_of(Point a, Point b, std::size_t tiers, double shift, double box_width) {
  const double across = std::abs(a.x - b.x);
  const auto curve = [&](double x, double y) {
    return fmt::format("M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}", a.x, a.y, x, y, b.x, b.y);
  };
  if (tiers == 0)  // above the boxes between
    return {curve((a.x + b.x) / 2, a.y - 2 * (std::min(28 + across / 20, 50.0) + shift)), a};
  const double x = (a.x + b.x) / 2, y = (a.y + b.y) / 2;
  if (tiers > 1 && across < box_width) {  // beside the boxes between
    const double bend = box_width + 40 * static_cast<double>(tiers) + shift;
    return {curve(x + bend, y), {x + bend / 2, y}};
  }
  constexpr double kShare = 0.4;  // from the lower end, where lines of different boxes are apart
  return {fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}", a.x + shift, a.y, b.x + shift, b.y),
          {a.x + shift + kShare * (b.x - a.x), a.y + kShare * (b.y - a.y)}};
}

std::string draw_line(const PicturedCables& in, const OverviewCable& line, const LineCourse& course,
                      bool counted) {
  const bool slow = line.state == CableState::kSlow, down = line.state == CableState::kDown;
  const std::string words = line.cables.size() == 1 ? cable_words(in, line.cables.front())
                                                    : fmt::format("{} cables, such as {}", line.cables.size(),
                                                                  cable_words(in, line.cables.front()));
  std::string out = fmt::format("<path class=\"cable{}\" d=\"{}\"><title>{}{}</title></path>\n",
                                slow                                 ? " slow"
                                : down                               ? " down"
                                : line.state == CableState::kAssumed ? " assumed"
                                                                     : "",
                                course.path, xml_text(words),
                                down   ? ": down"
                                : slow ? ": slow"
                                       : "");
  if (counted && line.state != CableState::kAssumed && line.cables.size() > 1)
    out += fmt::format("<text class=\"small count\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", course.count.x,
                       course.count.y + 3, line.cables.size());
  return out;
}

LegendCounts counts_of(const PicturedCables& in) {
  LegendCounts counts;
  for (std::size_t i = 0; i < in.states.size(); ++i) {
    const topology::Cable& cable = in.cabling.cables[i];
    if (in.tiers[cable.a.node] == SIZE_MAX || in.tiers[cable.b.node] == SIZE_MAX) continue;
    if (in.states[i] == CableState::kAssumed) {
      counts.assumed = true;
      continue;
    }
    ++counts.cables;
    if (in.states[i] == CableState::kUsual) continue;
    const bool slow = in.states[i] == CableState::kSlow;
    ++(slow ? counts.slow : counts.down);
    std::string& first = slow ? counts.first_slow : counts.first_down;
    if (first.empty()) first = cable_words(in, i);
  }
  return counts;
}

}  // namespace

bool needs_overview(const topology::TopologyFile& file) {
  const Topology& topology = file.topology;
  return draws_listed_cables(file) || topology.family == Family::kGraph ||
         topology.num_servers() + topology.num_switches > kMostNamed;
}

Result<Drawing> draw_overview(const topology::TopologyFile& file) {
  if (Status status = countable(file.topology); !status.ok()) return fail(std::move(status));
  const PicturedCables in = pictured(file);
  const Overview overview = overview_of(in);
  const OverviewLayout layout = layout_of(overview);
  Drawing drawing{layout.width, layout.height + kLegendHeight, {}};
  // Unusual cables are drawn above the others.
  for (const CableState state :
       {CableState::kAssumed, CableState::kUsual, CableState::kSlow, CableState::kDown}) {
    for (const OverviewCable& line : overview.cables) {
      if (line.state != state) continue;
      // Cables of several states between two boxes are beside each other.
      const double shift = state == CableState::kSlow ? 5 : state == CableState::kDown ? -5 : 0;
      const std::size_t tiers = overview.boxes[line.upper].tier - overview.boxes[line.lower].tier;
      drawing.elements += draw_line(
          in, line, course_of(layout.at[line.lower], layout.at[line.upper], tiers, shift, layout.box_width),
          tiers > 0 && overview.cables.size() <= kMostCountedLines);
    }
  }
  for (std::size_t i = 0; i < overview.boxes.size(); ++i) {
    const OverviewBox& box = overview.boxes[i];
    drawing.elements +=
        draw_box(text_of(in, box), box.is_switch, box.nodes.size(), layout.at[i], layout.box_width);
  }
  drawing.elements += legend(counts_of(in), layout.height, layout.width);
  return drawing;
}

}  // namespace hips::picture
