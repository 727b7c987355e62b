#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace hips::topology {

/// The number of edges between each node and the closest of `starts`; SIZE_MAX: no edges lead there.
///
/// Cost     linear in nodes and edges.
inline std::vector<std::size_t> distances(std::size_t num_nodes,
                                          std::span<const std::pair<std::size_t, std::size_t>> edges,
                                          std::vector<std::size_t> starts) {
  std::vector<std::vector<std::size_t>> near(num_nodes);
  for (const auto& [a, b] : edges) {
    near[a].push_back(b);
    near[b].push_back(a);
  }
  std::vector<std::size_t> result(num_nodes, SIZE_MAX);
  for (const std::size_t start : starts) result[start] = 0;
  std::vector<std::size_t> reached = std::move(starts);
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const std::size_t node = reached[i];
    for (const std::size_t other : near[node]) {
      if (result[other] != SIZE_MAX) continue;
      result[other] = result[node] + 1;
      reached.push_back(other);
    }
  }
  return result;
}

}  // namespace hips::topology
