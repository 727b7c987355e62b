#include "tools/hips/picture/svg.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "tools/hips/picture/dot.hpp"
#include "tools/hips/picture/tiers.hpp"
#include "topology/family.hpp"
#include "topology/rates.hpp"

namespace hips::picture {
namespace {

constexpr double kGap = 92;    ///< between neighbours of a row
constexpr double kRow = 110;   ///< between rows
constexpr double kEdge = 70;   ///< around the picture
constexpr double kTitle = 40;  ///< above it
constexpr double kBoxWidth = 76, kBoxHeight = 30;

constexpr const char* kStyle = R"(<style>
  :root { color-scheme: light dark; }
  .page { fill: #ffffff; } text { fill: #1f2430; font: 12px system-ui, sans-serif; text-anchor: middle; }
  .title { font-size: 16px; font-weight: 600; text-anchor: start; } .small { font-size: 9px; }
  .server { fill: #e3f0ff; stroke: #2f6fb5; } .switch { fill: #fff0d6; stroke: #b87414; }
  .cable { stroke: #8a93a3; fill: none; stroke-width: 1.2; }
  .slow { stroke: #d08700; stroke-width: 3; } .down { stroke: #d23b3b; stroke-width: 2; stroke-dasharray: 5 4; }
  @media (prefers-color-scheme: dark) {
    .page { fill: #14171d; } text { fill: #e6e9ef; }
    .server { fill: #17304d; stroke: #6fb1ff; } .switch { fill: #46330f; stroke: #f0b548; }
    .cable { stroke: #68707f; } .slow { stroke: #ffb534; } .down { stroke: #ff6b6b; }
  }
</style>
)";

std::string xml_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

struct Point {
  double x = 0, y = 0;
};

/// Where the nodes stand, and how large that is.
struct Layout {
  std::vector<Point> at;
  double width = 0, height = 0;
};

/// The row of each node, from above: trees grow upwards from the servers; the levels of a server-centric
/// fabric stand above and below them in turn, so that two of them do not cross.
std::vector<std::int64_t> rows_by_tier(std::vector<std::int64_t> tiers, bool both_sides) {
  if (both_sides) {
    for (std::int64_t& tier : tiers) tier = tier % 2 == 1 ? -(tier + 1) / 2 : tier / 2;
  }
  const std::int64_t top = *std::ranges::max_element(tiers);
  for (std::int64_t& tier : tiers) tier = top - tier;
  return tiers;
}

/// Each row spread over the width of the widest.
Layout rows_of(const Graph& graph, const std::vector<std::int64_t>& rows) {
  const std::int64_t last = *std::ranges::max_element(rows);
  std::vector<std::int64_t> count(static_cast<std::size_t>(last) + 1, 0), placed(count);
  for (const std::int64_t row : rows) ++count[static_cast<std::size_t>(row)];
  const auto widest = static_cast<double>(*std::ranges::max_element(count));
  Layout layout;
  layout.width = 2 * kEdge + std::max(widest - 1, 3.0) * kGap;
  layout.height = kTitle + 2 * kEdge + static_cast<double>(last) * kRow;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto row = static_cast<std::size_t>(rows[i]);
    const double share = (static_cast<double>(placed[row]++) + 0.5) / static_cast<double>(count[row]);
    const double inner = layout.width - 2 * kEdge + kGap;
    layout.at.push_back(
        {kEdge - kGap / 2 + share * inner, kTitle + kEdge + static_cast<double>(rows[i]) * kRow});
  }
  return layout;
}

/// A Torus of up to two dimensions, its wraps drawn as curves; of more, a ring of servers.
Layout grid_of(const Topology& topology) {
  const auto levels = topology::network_levels(topology);
  const std::int64_t servers = topology.num_servers();
  Layout layout;
  if (levels.size() > 2) {
    const double radius = std::max(200.0, static_cast<double>(servers) * kGap / (2 * std::numbers::pi));
    for (std::int64_t s = 0; s < servers; ++s) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(s) / static_cast<double>(servers);
      layout.at.push_back(
          {kEdge + radius * (1 + std::sin(angle)), kTitle + kEdge + radius * (1 - std::cos(angle))});
    }
    layout.width = 2 * (kEdge + radius);
    layout.height = kTitle + 2 * (kEdge + radius);
    return layout;
  }
  const std::int64_t across = levels.empty() ? 1 : levels[0].radix;
  for (std::int64_t s = 0; s < servers; ++s) {
    layout.at.push_back({kEdge + static_cast<double>(s % across) * kGap * 1.2,
                         kTitle + kEdge + static_cast<double>(s / across) * kRow * 0.8});
  }
  layout.width = 2 * kEdge + static_cast<double>(std::max<std::int64_t>(across - 1, 3)) * kGap * 1.2;
  layout.height = kTitle + 2 * kEdge + static_cast<double>(servers / across - 1) * kRow * 0.8;
  return layout;
}

/// Straight, but around what stands between the ends: a wrap of a torus bends away from its row or column.
std::string cable_path(Point a, Point b, bool wrap, bool second) {
  if (!wrap && !second) return fmt::format("M{:.0f} {:.0f}L{:.0f} {:.0f}", a.x, a.y, b.x, b.y);
  const bool level = std::abs(a.y - b.y) < 1;
  const double bend = !wrap ? 16 : level ? 60 : 104;  // a curve goes half as far: past a box
  const double x = (a.x + b.x) / 2 + (level ? 0 : bend), y = (a.y + b.y) / 2 - (level ? bend : 0);
  return fmt::format("M{:.0f} {:.0f}Q{:.0f} {:.0f} {:.0f} {:.0f}", a.x, a.y, x, y, b.x, b.y);
}

}  // namespace

Result<std::string> topology_svg(const topology::TopologyFile& file) {
  const Topology& topology = file.topology;
  if (topology.num_servers() + topology.num_switches > kMostDrawn) {
    return fail(
        Code::kUnsupported,
        fmt::format("topology \"{}\" has {} servers and {} switches; a picture has at most {} of them",
                    topology.spec, topology.num_servers(), topology.num_switches, kMostDrawn));
  }
  const Graph graph = topology.graph();
  Topology healthy = topology;
  healthy.overrides.clear();
  const Graph expected = healthy.graph();
  const Layout layout = topology.num_switches == 0
                            ? grid_of(topology)
                            : rows_of(graph, rows_by_tier(tiers_of(topology, graph), topology.servers_relay));

  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" "
      "role=\"img\">\n<title>{2}</title>\n{3}<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n"
      "<text class=\"title\" x=\"24\" y=\"30\">{2}</text>\n",
      layout.width, layout.height, xml_text(topology.name), kStyle);
  const auto name_of = [&](std::int64_t node) {
    const GraphNode& each = graph.nodes[static_cast<std::size_t>(node)];
    return each.is_switch ? each.name : file.server_name(each.id);
  };
  for (std::size_t i = 0; i < graph.links.size(); ++i) {
    const GraphLink& link = graph.links[i];
    const bool slow = link.bandwidth_bytes_per_s < expected.links[i].bandwidth_bytes_per_s;
    const Point a = layout.at[static_cast<std::size_t>(link.a)],
                b = layout.at[static_cast<std::size_t>(link.b)];
    // Between servers, a step of more than one place is a wrap; a side of 2 has a second cable back.
    const bool between_servers = link.b < topology.num_servers();
    const bool far = std::abs(a.x - b.x) > kGap * 1.3 || std::abs(a.y - b.y) > kRow;
    const auto port = [](Rail rail) {
      return rail == kNoRail ? std::string() : fmt::format(" NIC {}", rail);
    };
    text +=
        fmt::format("<path class=\"cable{}\" d=\"{}\"><title>{}{} - {}{}: {}</title></path>\n",
                    !link.up ? " down"
                    : slow   ? " slow"
                             : "",
                    cable_path(a, b, between_servers && far, between_servers && link.b < link.a),
                    xml_text(name_of(link.a)), port(link.a_port), xml_text(name_of(link.b)),
                    port(link.b_port), link.up ? topology::rate_text(link.bandwidth_bytes_per_s) : "down");
  }
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Point at = layout.at[i];
    const std::string name = name_of(static_cast<std::int64_t>(i));
    // Two lines where one is too long for the box: "level 0" and "switch 2".
    const std::size_t cut = name.size() > 11 ? name.rfind(' ', name.rfind(' ') - 1) : std::string::npos;
    text += fmt::format("<rect class=\"{}\" x=\"{:.0f}\" y=\"{:.0f}\" width=\"{}\" height=\"{}\" rx=\"{}\"/>",
                        graph.nodes[i].is_switch ? "switch" : "server", at.x - kBoxWidth / 2,
                        at.y - kBoxHeight / 2, kBoxWidth, kBoxHeight, graph.nodes[i].is_switch ? 3 : 14);
    if (cut == std::string::npos) {
      text += fmt::format("<text{} x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n",
                          name.size() > 11 ? " class=\"small\"" : "", at.x, at.y + 4, xml_text(name));
    } else {
      text += fmt::format(
          "<text class=\"small\" x=\"{0:.0f}\" y=\"{1:.0f}\">{2}</text><text class=\"small\" "
          "x=\"{0:.0f}\" y=\"{3:.0f}\">{4}</text>\n",
          at.x, at.y - 2, xml_text(name.substr(0, cut)), at.y + 9, xml_text(name.substr(cut + 1)));
    }
  }
  return text + "</svg>\n";
}

}  // namespace hips::picture
