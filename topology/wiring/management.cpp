#include "topology/wiring/management.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "topology/rates.hpp"

namespace hips::topology {

std::optional<Cabling> without_management(std::string_view name, const Cabling& cabling) {
  const auto is_server = [&](std::size_t node) {
    return cabling.nodes[node].kind == CabledNode::Kind::kServer;
  };
  std::vector<double> fastest(cabling.nodes.size(), 0);  // cable of a server
  for (const Cable& cable : cabling.cables)
    for (const std::size_t node : {cable.a.node, cable.b.node})
      fastest[node] = std::max(fastest[node], cable.bandwidth_bytes_per_s);
  std::vector<std::size_t> slow(cabling.nodes.size(), 0), all(cabling.nodes.size(), 0);  // cables of servers
  for (const Cable& cable : cabling.cables) {
    if (is_server(cable.a.node) == is_server(cable.b.node)) continue;
    const std::size_t server = is_server(cable.a.node) ? cable.a.node : cable.b.node;
    const std::size_t at = is_server(cable.a.node) ? cable.b.node : cable.a.node;
    const double rate = cable.bandwidth_bytes_per_s;
    ++all[at];
    if (rate > 0 && kFasterThanManagement * rate <= fastest[server]) ++slow[at];
  }
  Cabling rest = cabling;
  std::string names;
  std::size_t count = 0;
  std::vector<bool> is_left_out(cabling.nodes.size(), false);
  for (std::size_t node = 0; node < all.size(); ++node) {
    if (all[node] == 0 || slow[node] < all[node]) continue;
    is_left_out[node] = true;
    constexpr std::size_t kMostNamed = 4;
    if (++count <= kMostNamed) names += (names.empty() ? "" : ", ") + cabling.nodes[node].name;
  }
  if (count == 0) return std::nullopt;
  std::erase_if(rest.cables,
                [&](const Cable& cable) { return is_left_out[cable.a.node] || is_left_out[cable.b.node]; });
  std::vector<std::size_t> number(cabling.nodes.size(), 0);
  rest.nodes.clear();
  for (std::size_t node = 0; node < number.size(); ++node) {
    number[node] = rest.nodes.size();
    if (!is_left_out[node]) rest.nodes.push_back(cabling.nodes[node]);
  }
  for (Cable& cable : rest.cables) {
    cable.a.node = number[cable.a.node];
    cable.b.node = number[cable.b.node];
  }
  rest.notes.push_back(fmt::format(
      "{}: servers have NICs at least {} times as fast as those to {}{}; taken for a management network and left out",
      name, kFasterThanManagement, names, count > 4 ? fmt::format(" and {} more", count - 4) : ""));
  return rest;
}

}  // namespace hips::topology
