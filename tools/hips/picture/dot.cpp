#include "tools/hips/picture/dot.hpp"

#include <map>

#include <fmt/format.h>

#include "tools/hips/picture/drawable.hpp"
#include "tools/hips/picture/tiers.hpp"
#include "topology/rates.hpp"

namespace hips::picture {
namespace {

/// A string of the DOT language.
std::string dot_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

}  // namespace

Result<std::string> topology_dot(const topology::TopologyFile& file) {
  const Topology& topology = file.topology;
  if (Status status = drawable(topology); !status.ok()) return fail(std::move(status));
  const Graph graph = topology.graph();
  Topology healthy = topology;
  healthy.overrides.clear();
  const Graph expected = healthy.graph();
  const auto tiers = tiers_of(topology, graph);

  std::string text = fmt::format("graph {} {{\n", dot_string(topology.name));
  text += fmt::format("  label={};\n  rankdir=BT;\n  node [fontname=\"sans-serif\"];\n",
                      dot_string(topology.name));
  std::map<std::int64_t, std::string> rows;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    const std::string label = node.is_switch ? node.name : file.server_name(node.id);
    text += fmt::format("  n{} [label={}, shape={}];\n", i, dot_string(label),
                        node.is_switch ? "box" : "ellipse");
    rows[tiers[i]] += fmt::format(" n{};", i);
  }
  // Graphviz draws a torus best without rows.
  if (topology.num_switches > 0) {
    for (const auto& [tier, nodes] : rows) text += fmt::format("  {{ rank=same;{} }}\n", nodes);
  }
  for (std::size_t i = 0; i < graph.links.size(); ++i) {
    const GraphLink& link = graph.links[i];
    std::string attributes;
    if (link.a_port != kNoRail) attributes += fmt::format(" taillabel=\"{}\"", link.a_port);
    if (link.b_port != kNoRail) attributes += fmt::format(" headlabel=\"{}\"", link.b_port);
    // For those who read it back; people see those that differ.
    attributes += fmt::format(" rate={}", dot_string(topology::rate_text(link.bandwidth_bytes_per_s)));
    if (link.bandwidth_bytes_per_s != expected.links[i].bandwidth_bytes_per_s)
      attributes += fmt::format(" label={}", dot_string(topology::rate_text(link.bandwidth_bytes_per_s)));
    if (!link.up) attributes += " style=dashed label=\"down\"";
    text += fmt::format("  n{} -- n{} [{}];\n", link.a, link.b, attributes.substr(1));
  }
  return text + "}\n";
}

}  // namespace hips::picture
