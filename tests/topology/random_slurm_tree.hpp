#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace hips::topology {

/// A tree that Slurm accepts: its text, and the nodes of each leaf in order. One to four tiers, uneven, leaves at different
/// depths, sometimes several switches on top, and host names with a domain, dashes or numbers with zeros in front.
struct RandomSlurmTree {
  explicit RandomSlurmTree(std::uint64_t seed) : random(seed) {
    const std::vector<std::string> shapes = {"n#",        "gpu-#",     "r#.example.org",
                                             "node#-ib0", "jpbi-#-02", "x1000c0s#b0"};
    name_shape = shapes[random() % shapes.size()];
    const std::size_t tops = 1 + random() % 8 / 7 * (random() % 3);
    for (std::size_t i = 0; i < tops; ++i) add(random() % 4);
    // The order of lines is free.
    std::shuffle(lines.begin(), lines.end(), random);
    for (const std::string& line : lines) text += line;
  }

  std::string add(std::size_t tiers) {
    const std::string name = "sw" + std::to_string(num_switches++);
    std::string line = "SwitchName=" + name;
    if (tiers == 0) {
      leaves.emplace_back();
      std::string nodes;
      for (std::size_t i = 1 + random() % 6; i > 0; --i) {
        leaves.back().push_back(next_node());
        nodes += (nodes.empty() ? "" : ",") + leaves.back().back();
      }
      line += " Nodes=" + nodes;
    } else {
      std::string below;
      for (std::size_t i = 1 + random() % 4; i > 0; --i)
        below += (below.empty() ? "" : ",") + add(random() % 8 == 0 ? random() % tiers : tiers - 1);
      line += " Switches=" + below;
    }
    lines.push_back(line + "\n");
    return name;
  }

  std::string next_node() {
    std::string name = name_shape;
    return name.replace(name.find('#'), 1, std::to_string(num_nodes++));
  }

  std::mt19937_64 random;
  std::string name_shape;
  std::string text;
  std::vector<std::string> lines;
  std::vector<std::vector<std::string>> leaves;
  std::size_t num_switches = 0, num_nodes = 0;
};

}  // namespace hips::topology
