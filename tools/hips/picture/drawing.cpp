#include "tools/hips/picture/drawing.hpp"

#include <functional>

#include <fmt/format.h>

#include "tools/hips/picture/drawable.hpp"
#include "tools/hips/picture/label.hpp"
#include "tools/hips/picture/layout.hpp"
#include "tools/hips/picture/legend.hpp"
#include "topology/health/cabling_of.hpp"
#include "topology/health/health.hpp"
#include "topology/rates.hpp"

namespace hips::picture {

const std::string_view kDrawingStyle = R"(
  .wiring text { fill: #1f2430; font: 12px system-ui, sans-serif; text-anchor: middle; }
  .wiring .small { font-size: 9px; }
  .wiring .server { fill: #e3f0ff; stroke: #2f6fb5; } .wiring .switch { fill: #fff0d6; stroke: #b87414; }
  .wiring .cable { stroke: #8a93a3; fill: none; stroke-width: 1.2; stroke-linejoin: round; }
  .wiring .slow { stroke: #d08700; stroke-width: 3; }
  .wiring .down { stroke: #d23b3b; stroke-width: 2; stroke-dasharray: 5 4; }
  .wiring .assumed { stroke: #8a93a3; stroke-dasharray: 1 4; }
  .wiring .key { fill: none; } .wiring .key.usual { stroke: #8a93a3; stroke-width: 1.2; }
  .wiring .key-text { font-size: 11px; text-anchor: start; }
  .wiring .count { stroke: #ffffff; stroke-width: 3px; paint-order: stroke; }
  @media (prefers-color-scheme: dark) {
    .wiring text { fill: #e6e9ef; }
    .wiring .server { fill: #17304d; stroke: #6fb1ff; } .wiring .switch { fill: #46330f; stroke: #f0b548; }
    .wiring .count { stroke: #14171d; } .wiring .key.usual { stroke: #68707f; }
    .wiring .cable { stroke: #68707f; } .wiring .slow { stroke: #ffb534; } .wiring .down { stroke: #ff6b6b; }
  }
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

namespace {

constexpr std::size_t kMostInBox = 14;  ///< characters of 9 px

using NameOf = std::function<std::string(std::int64_t node)>;

/// The bandwidth of each cable's like. A graph has no levels: there, cables are alike that join the same tiers.
std::vector<double> usual_rates(const topology::TopologyFile& file) {
  std::vector<double> rates;
  Topology healthy = file.topology;
  healthy.overrides.clear();
  for (const GraphLink& link : healthy.graph().links) rates.push_back(link.bandwidth_bytes_per_s);
  if (file.topology.family != Family::kGraph) return rates;
  topology::TopologyFile unlisted = file;
  unlisted.cabling = {};
  unlisted.told = {};
  const topology::Cabling cabling = topology::cabling_of(unlisted);
  for (const auto& odd : topology::odd_cables(cabling, topology::cable_tiers(cabling)))
    rates[odd.cable] = odd.usual_bytes_per_s;
  return rates;
}

void draw_cables(const Graph& graph, const std::vector<double>& usual, const PictureLayout& layout,
                 const NameOf& name_of, LegendCounts& counts, std::string& text) {
  for (std::size_t i = 0; i < graph.links.size(); ++i) {
    const GraphLink& link = graph.links[i];
    const bool slow = link.up && link.bandwidth_bytes_per_s < usual[i];
    ++counts.cables;
    if (slow && counts.slow++ == 0)
      counts.first_slow = fmt::format("{} -- {} at {}", name_of(link.a), name_of(link.b),
                                      topology::rate_text(link.bandwidth_bytes_per_s));
    if (!link.up && counts.down++ == 0)
      counts.first_down = fmt::format("{} -- {}", name_of(link.a), name_of(link.b));
    const auto port = [](Rail rail) {
      return rail == kNoRail ? std::string() : fmt::format(" NIC {}", rail);
    };
    const auto end = [&](std::int64_t node, Rail rail) {
      return rail == kNoRail ? std::string()
                             : fmt::format("{}:{}", graph.nodes[static_cast<std::size_t>(node)].id, rail);
    };
    const std::string a_end = end(link.a, link.a_port), b_end = end(link.b, link.b_port);
    text += fmt::format(
        "<path class=\"cable{}\" data-ends=\"{}{}{}\" d=\"{}\"><title>{}{} - {}{}: {}</title></path>\n",
        !link.up ? " down"
        : slow   ? " slow"
                 : "",
        a_end, a_end.empty() || b_end.empty() ? "" : " ", b_end, layout.paths[i], xml_text(name_of(link.a)),
        port(link.a_port), xml_text(name_of(link.b)), port(link.b_port),
        link.up ? topology::rate_text(link.bandwidth_bytes_per_s) : "down");
  }
}

void draw_nodes(const Graph& graph, const PictureLayout& layout, const NameOf& name_of, std::string& text) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Point at = layout.at[i];
    const std::string name = name_of(static_cast<std::int64_t>(i));
    // A name that is too long for the box is split into two lines: "level 0" and "switch 2".
    const std::size_t cut = name.size() > 11 ? name.rfind(' ', name.rfind(' ') - 1) : std::string::npos;
    const GraphNode& node = graph.nodes[i];
    text +=
        node.is_switch ? std::string("<g>") : fmt::format("<g class=\"node\" data-server=\"{}\">", node.id);
    if (num_characters(name) > kMostInBox) text += fmt::format("<title>{}</title>", xml_text(name));
    text += fmt::format("<rect class=\"{}\" x=\"{:.0f}\" y=\"{:.0f}\" width=\"{}\" height=\"{}\" rx=\"{}\"/>",
                        node.is_switch ? "switch" : "server", at.x - kBoxWidth / 2, at.y - kBoxHeight / 2,
                        kBoxWidth, kBoxHeight, node.is_switch ? 3 : 14);
    if (cut == std::string::npos) {
      text += fmt::format("<text{} x=\"{:.0f}\" y=\"{:.0f}\">{}</text>",
                          name.size() > 11 ? " class=\"small\"" : "", at.x, at.y + 4,
                          xml_text(shortened(name, kMostInBox)));
    } else {
      text += fmt::format(
          "<text class=\"small\" x=\"{0:.0f}\" y=\"{1:.0f}\">{2}</text><text class=\"small\" "
          "x=\"{0:.0f}\" y=\"{3:.0f}\">{4}</text>\n",
          at.x, at.y - 2, xml_text(shortened(name.substr(0, cut), kMostInBox)), at.y + 9,
          xml_text(shortened(name.substr(cut + 1), kMostInBox)));
    }
    text += "</g>\n";
  }
}

}  // namespace

Result<Drawing> draw(const topology::TopologyFile& file) {
  const Topology& topology = file.topology;
  if (Status status = drawable(topology); !status.ok()) return fail(std::move(status));
  const Graph graph = topology.graph();
  const PictureLayout layout = layout_of(topology, graph);
  const auto name_of = [&](std::int64_t node) {
    const GraphNode& each = graph.nodes[static_cast<std::size_t>(node)];
    return each.is_switch ? each.name : file.server_name(each.id);
  };
  Drawing drawing{layout.width, layout.height + kLegendHeight, {}};
  LegendCounts counts;
  draw_cables(graph, usual_rates(file), layout, name_of, counts, drawing.elements);
  draw_nodes(graph, layout, name_of, drawing.elements);
  drawing.elements += legend(counts, layout.height, layout.width);
  return drawing;
}

}  // namespace hips::picture
