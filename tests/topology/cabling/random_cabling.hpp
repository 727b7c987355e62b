#pragma once

#include <cstddef>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "topology/cabling/cabling.hpp"

namespace hips::test {

/// A random fabric of two tiers: leaves with servers of one to four NICs, some leaves with cables to each spine. Ports of
/// switches are numbers from 1, those of servers "mlx5_0", "mlx5_1", ... Every node has a cable; names hold no blanks.
inline topology::Cabling random_fabric(std::mt19937_64& random) {
  using topology::Cable;
  using topology::CabledNode;
  using topology::CableEnd;
  using Kind = CabledNode::Kind;
  topology::Cabling made;
  const std::size_t num_leaves = 1 + random() % 4, num_spines = num_leaves == 1 ? 0 : 1 + random() % 3;
  std::vector<std::size_t> used(num_leaves + num_spines, 0);
  for (std::size_t i = 0; i < num_leaves; ++i)
    made.nodes.push_back({"leaf" + std::to_string(i), Kind::kSwitch, 0});
  for (std::size_t i = 0; i < num_spines; ++i)
    made.nodes.push_back({"spine." + std::to_string(i), Kind::kSwitch, 0});
  const auto port = [&](std::size_t node) { return CableEnd{node, std::to_string(++used[node])}; };
  constexpr double kEdr = 12.5e9, kDdr = 2e9;
  for (std::size_t i = 0; i < num_leaves; ++i) {
    for (std::size_t j = 0; j < num_spines; ++j) {
      for (std::size_t k = 1 + random() % 2; k > 0; --k) {
        const double rate = random() % 8 == 0 ? kDdr : kEdr;
        made.cables.push_back({.a = port(i), .b = port(num_leaves + j), .bandwidth_bytes_per_s = rate});
      }
    }
  }
  const std::size_t num_servers = 1 + random() % 9;
  for (std::size_t i = 0; i < num_servers; ++i) {
    made.nodes.push_back({"n-" + std::to_string(i), Kind::kServer, 0});
    const std::size_t num_nics = 1 + random() % 4;
    for (std::size_t nic = 0; nic < num_nics; ++nic) {
      const std::size_t leaf = i < num_leaves && nic == 0 ? i : random() % num_leaves;
      made.cables.push_back({.a = {num_leaves + num_spines + i, "mlx5_" + std::to_string(nic)},
                             .b = port(leaf),
                             .bandwidth_bytes_per_s = kEdr});
    }
  }
  // A leaf of a fabric with one leaf, or with fewer servers, may have no cable.
  std::vector<std::size_t> index(made.nodes.size(), 0);
  std::vector<bool> cabled(made.nodes.size(), false);
  for (const Cable& cable : made.cables) cabled[cable.a.node] = cabled[cable.b.node] = true;
  std::vector<CabledNode> kept;
  for (std::size_t i = 0; i < made.nodes.size(); ++i) {
    index[i] = kept.size();
    if (cabled[i]) kept.push_back(made.nodes[i]);
  }
  made.nodes = std::move(kept);
  for (Cable& cable : made.cables) {
    cable.a.node = index[cable.a.node];
    cable.b.node = index[cable.b.node];
  }
  return made;
}

}  // namespace hips::test
