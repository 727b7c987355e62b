#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace hips::ps {

/// How fast the nodes of a model send, from what they have measured. A node that waited for a slow one measured less than it can,
/// so the most of its last measurements counts.
///
/// Units    bytes per ns
class NodeRates {
 public:
  explicit NodeRates(std::size_t num_nodes) : nodes_(num_nodes) {}

  void add(std::size_t node, double rate) {
    Node& measured = nodes_[node];
    measured.last[measured.num++ % kLast] = rate;
  }
  /// Of a node that nothing is known of, that of the fastest one.
  [[nodiscard]] double of(std::size_t node) const {
    if (nodes_[node].num > 0) return most_of(nodes_[node]);
    double most = 0;
    for (const Node& other : nodes_) most = std::max(most, most_of(other));
    return most > 0 ? most : 1;
  }

 private:
  static constexpr std::size_t kLast = 4;
  struct Node {
    std::array<double, kLast> last{};
    std::size_t num = 0;
  };
  static double most_of(const Node& node) { return std::ranges::max(node.last); }

  std::vector<Node> nodes_;
};

}  // namespace hips::ps
