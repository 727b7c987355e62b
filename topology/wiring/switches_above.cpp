#include "topology/wiring/switches_above.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "topology/cabling/cabling_builder.hpp"
#include "topology/union_find.hpp"

namespace hips::topology {

std::size_t add_switches_above(Cabling& cabling) {
  using Kind = CabledNode::Kind;
  const auto is_server = [&](std::size_t node) { return cabling.nodes[node].kind == Kind::kServer; };
  UnionFind joined(cabling.nodes.size());
  std::vector<std::size_t> servers_below(cabling.nodes.size(), 0);
  double rate = 0;
  for (const Cable& cable : cabling.cables) {
    joined.join(cable.a.node, cable.b.node);
    if (is_server(cable.a.node) == is_server(cable.b.node)) continue;
    ++servers_below[is_server(cable.a.node) ? cable.b.node : cable.a.node];
    rate = std::max(rate, cable.bandwidth_bytes_per_s);
  }
  std::vector<std::size_t> leaves;
  std::vector<bool> has_leaf(cabling.nodes.size(), false);
  for (std::size_t node = 0; node < cabling.nodes.size(); ++node) {
    if (servers_below[node] == 0) continue;
    leaves.push_back(node);
    has_leaf[joined.find(node)] = true;
  }
  const auto apart = [&](std::size_t node) { return joined.find(node) != joined.find(leaves.front()); };
  if (leaves.empty() || std::ranges::none_of(leaves, apart)) return 0;
  for (const Cable& cable : cabling.cables) {
    if (!has_leaf[joined.find(cable.a.node)]) return 0;
  }
  const std::size_t count = *std::ranges::max_element(servers_below);
  if (count * leaves.size() > kMostCables - cabling.cables.size()) return 0;
  std::string name = "above-";
  const auto begins_so = [&](const CabledNode& node) { return node.name.starts_with(name); };
  while (std::ranges::any_of(cabling.nodes, begins_so)) name = "above-" + name;
  for (std::size_t i = 1; i <= count; ++i) {
    const std::size_t above = cabling.nodes.size();
    cabling.nodes.push_back({.name = name + std::to_string(i), .kind = Kind::kSwitch, .is_assumed = true});
    for (const std::size_t leaf : leaves)
      cabling.cables.push_back({.a = {leaf, ""}, .b = {above, ""}, .bandwidth_bytes_per_s = rate});
  }
  return count;
}

}  // namespace hips::topology
