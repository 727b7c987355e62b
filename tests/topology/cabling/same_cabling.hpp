#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "topology/cabling/cabling.hpp"

namespace hips::test {

/// The nodes and cables as sorted lines, so that two cablings compare whatever their order and the ends that come first.
inline std::vector<std::string> lines_of(const topology::Cabling& cabling) {
  std::vector<std::string> lines;
  for (const topology::CabledNode& node : cabling.nodes)
    lines.push_back(fmt::format("node {} {}", node.name, static_cast<int>(node.kind)));
  for (const topology::Cable& cable : cabling.cables) {
    std::string a = fmt::format("{}[{}]", cabling.nodes[cable.a.node].name, cable.a.port);
    std::string b = fmt::format("{}[{}]", cabling.nodes[cable.b.node].name, cable.b.port);
    if (b < a) std::swap(a, b);
    lines.push_back(fmt::format("cable {} {} {:.3f}Gb {}ns {}", a, b, cable.bandwidth_bytes_per_s * 8 / 1e9,
                                cable.latency_ns, cable.up ? "up" : "down"));
  }
  std::ranges::sort(lines);
  return lines;
}

}  // namespace hips::test
