#include "topology/wiring/between_servers.hpp"

#include <algorithm>
#include <cstdint>

namespace hips::topology {
namespace {

/// A depth-first search from a root that is joined to every server. A node lies on a path between two servers if it is on a cycle
/// with the root, so in one of the root's biconnected components: none of the nodes above it in the search cuts it off. `low` is
/// the earliest node that a node and those below it reach by one cable outside the tree.
class PathSearch {
 public:
  explicit PathSearch(const ServerWiring& wiring)
      : wiring_(wiring), number_(wiring.size(), 0), low_(wiring.size(), 0) {}

  std::vector<bool> run() {
    for (std::size_t server = 0; server < wiring_.num_servers; ++server)
      if (number_[server] == 0) search(server);
    // Above each node comes its parent, so the parents' answers are known.
    std::vector<bool> between(wiring_.size(), false);
    for (const Visit& visit : order_) {
      const bool is_first = visit.parent == kRoot;
      // A node that reaches no further up than its parent is cut off by that.
      between[visit.node] = is_first ? wiring_.num_servers > 1
                                     : between[visit.parent] && low_[visit.node] < number_[visit.parent];
    }
    return between;
  }

 private:
  static constexpr std::size_t kRoot = SIZE_MAX;  ///< has number 0

  struct Visit {
    std::size_t node = 0, parent = kRoot;
    std::size_t next = 0;  ///< position among the cables of the node
  };

  void search(std::size_t first) {
    std::vector<Visit> stack;
    const auto enter = [&](std::size_t node, std::size_t parent) {
      number_[node] = order_.size() + 1;
      // The cable to the root is outside the tree but at the first server.
      low_[node] = wiring_.is_server(node) ? 0 : number_[node];
      stack.push_back({.node = node, .parent = parent});
      order_.push_back(stack.back());
    };
    enter(first, kRoot);
    while (!stack.empty()) {
      Visit& at = stack.back();
      if (at.next == wiring_.of[at.node].size()) {
        const Visit done = at;
        stack.pop_back();
        if (!stack.empty()) low_[done.parent] = std::min(low_[done.parent], low_[done.node]);
        continue;
      }
      const std::size_t other = wiring_.across(wiring_.of[at.node][at.next++], at.node);
      if (other == at.parent) continue;
      if (number_[other] == 0) {
        enter(other, at.node);
      } else {
        low_[at.node] = std::min(low_[at.node], number_[other]);
      }
    }
  }

  const ServerWiring& wiring_;
  std::vector<std::size_t> number_, low_;
  std::vector<Visit> order_;
};

}  // namespace

std::vector<bool> between_servers(const ServerWiring& wiring) {
  return PathSearch(wiring).run();
}

}  // namespace hips::topology
