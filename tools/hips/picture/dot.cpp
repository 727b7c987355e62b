#include "tools/hips/picture/dot.hpp"

#include <map>
#include <vector>

#include <fmt/format.h>

#include "tools/hips/picture/drawable.hpp"
#include "tools/hips/picture/tiers.hpp"
#include "topology/health/cabling_of.hpp"
#include "topology/health/odd_cables.hpp"
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

/// By node of cabling_with_assumed().
std::vector<std::int64_t> tiers_of_drawn(const topology::TopologyFile& file) {
  const Graph graph = file.topology.graph();
  const auto all = tiers_of(file.topology, graph);
  std::vector<std::int64_t> tiers;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    if (!graph.nodes[i].is_switch || !topology::switch_name(file.told, graph.nodes[i]).empty())
      tiers.push_back(all[i]);
  return tiers;
}

}  // namespace

Result<std::string> topology_dot(const topology::TopologyFile& file) {
  const Topology& topology = file.topology;
  if (Status status = drawable(topology); !status.ok()) return fail(std::move(status));
  const topology::Cabling cabling = topology::cabling_with_assumed(file);
  std::map<std::size_t, double> usual;
  for (const auto& odd : topology::odd_cables(cabling, topology::cable_tiers(cabling)))
    usual[odd.cable] = odd.usual_bytes_per_s;

  std::string text = fmt::format("graph {} {{\n", dot_string(topology.name));
  text += fmt::format("  label={};\n  rankdir=BT;\n  node [fontname=\"sans-serif\"];\n",
                      dot_string(topology.name));
  std::map<std::int64_t, std::string> rows;
  const auto tiers = tiers_of_drawn(file);
  for (std::size_t i = 0; i < cabling.nodes.size(); ++i) {
    const topology::CabledNode& node = cabling.nodes[i];
    text += fmt::format("  n{} [label={}, shape={}{}];\n", i, dot_string(node.name),
                        node.kind == topology::CabledNode::Kind::kSwitch ? "box" : "ellipse",
                        node.is_assumed ? ", assumed=true, style=dashed" : "");
    rows[tiers[i]] += fmt::format(" n{};", i);
  }
  // Graphviz draws a torus best without rows.
  if (topology.num_switches > 0) {
    for (const auto& [tier, nodes] : rows) text += fmt::format("  {{ rank=same;{} }}\n", nodes);
  }
  for (std::size_t i = 0; i < cabling.cables.size(); ++i) {
    const topology::Cable& cable = cabling.cables[i];
    const std::string rate = dot_string(topology::rate_text(cable.bandwidth_bytes_per_s));
    std::string attributes;
    if (!cable.a.port.empty()) attributes += " taillabel=" + dot_string(cable.a.port);
    if (!cable.b.port.empty()) attributes += " headlabel=" + dot_string(cable.b.port);
    // For those who read it back; people see those that differ.
    attributes += " rate=" + rate;
    if (cable.is_rate_assumed) attributes += " assumed=true";
    if (cable.latency_ns != kDefaultLatencyNs)
      attributes += " latency=" + dot_string(topology::latency_text(cable.latency_ns));
    const auto odd = usual.find(i);
    if (!cable.up)
      attributes += " style=dashed label=\"down\"";
    else if (odd != usual.end() && odd->second != cable.bandwidth_bytes_per_s)
      attributes += " label=" + rate;
    text += fmt::format("  n{} -- n{} [{}];\n", cable.a.node, cable.b.node, attributes.substr(1));
  }
  return text + "}\n";
}

}  // namespace hips::picture
