#include "topology/families/family.hpp"
#include "topology/graph_wiring.hpp"

// Wirings of no family: each cable is given.

namespace hips::topology {
namespace {

/// No spec describes a graph.
Result<Topology> make_no_graph(const Spec& spec) {
  return bad_spec(spec.text, "a graph has no spec; write its cables in a topology file with shape: graph");
}

std::string graph_switch_name(const Topology& topology, std::int64_t server, Rail rail) {
  const GraphWiring& wiring = *topology.wiring.value;
  for (const GraphLink& link : wiring.graph.links) {
    const bool from_a = link.a == server && link.a_port == rail;
    if (!from_a && (link.b != server || link.b_port != rail)) continue;
    const GraphNode& node = wiring.graph.nodes[static_cast<std::size_t>(from_a ? link.b : link.a)];
    return node.is_switch ? node.name : "";
  }
  return "";
}

void wire_graph(const Topology& topology, Graph& graph) {
  const Graph& given = topology.wiring.value->graph;
  for (const GraphNode& node : given.nodes)
    if (node.is_switch) add_switch(topology, graph, node.name);
  graph.links = given.links;
}

}  // namespace

const FamilyEntry kGraphFamily = {
    .family = Family::kGraph,
    .keyword = "graph",
    .usage = "a topology file with shape: graph",
    .example = "",
    .make = make_no_graph,
    .address = digit_address,
    .switch_name = graph_switch_name,
    .wire = wire_graph,
};

}  // namespace hips::topology
