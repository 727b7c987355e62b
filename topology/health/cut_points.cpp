#include "topology/health/cut_points.hpp"

#include <algorithm>
#include <cstdint>

#include "topology/health/cable_tiers.hpp"

namespace hips::topology {
namespace {

/// A depth-first search. `low` is the earliest node that a node or those below it reach by one cable outside the tree. The nodes
/// below a node that reach none before it are a part that only this node joins with the rest.
class CutSearch {
 public:
  explicit CutSearch(const Cabling& cabling)
      : cabling_(cabling), of_(cables_by_node(cabling)), number_(cabling.nodes.size(), 0) {
    low_ = servers_ = number_;
    parts_.resize(cabling.nodes.size());
  }

  std::vector<CutPoint> run() {
    for (std::size_t root = 0; root < cabling_.nodes.size(); ++root) {
      if (number_[root] > 0) continue;
      visited_.clear();
      search(root);
      for (const std::size_t node : visited_) add_node(node, servers_[root]);
      for (const std::size_t cable : bridges_) add_cable(cable, servers_[root]);
      bridges_.clear();
    }
    std::ranges::sort(result_, {}, [](const CutPoint& one) { return std::pair(one.is_cable, one.index); });
    return std::move(result_);
  }

 private:
  struct Visit {
    std::size_t node = 0;
    std::size_t by = SIZE_MAX;  ///< the cable that led here
    std::size_t next = 0;       ///< position among the cables of the node
  };
  struct Part {
    std::size_t servers = 0;
    bool is_one_server = false;  ///< a server at the switch itself
  };

  [[nodiscard]] bool is_server(std::size_t node) const {
    return cabling_.nodes[node].kind == CabledNode::Kind::kServer;
  }

  void enter(std::size_t node) {
    number_[node] = low_[node] = ++count_;
    servers_[node] = is_server(node) ? 1 : 0;
    visited_.push_back(node);
  }

  void search(std::size_t root) {
    std::vector<Visit> stack{{.node = root}};
    enter(root);
    while (!stack.empty()) {
      Visit& at = stack.back();
      if (at.next < of_[at.node].size()) {
        const std::size_t cable = of_[at.node][at.next++];
        const std::size_t other = node_across(cabling_.cables[cable], at.node);
        if (cable == at.by || !cabling_.cables[cable].up || other == at.node) continue;
        if (number_[other] > 0) {
          low_[at.node] = std::min(low_[at.node], number_[other]);
        } else {
          enter(other);
          stack.push_back({.node = other, .by = cable});
        }
        continue;
      }
      const Visit done = at;
      stack.pop_back();
      if (!stack.empty()) leave(done, stack.back().node);
    }
  }

  void leave(const Visit& child, std::size_t parent) {
    low_[parent] = std::min(low_[parent], low_[child.node]);
    servers_[parent] += servers_[child.node];
    if (low_[child.node] > number_[parent]) bridges_.push_back(child.by);
    if (low_[child.node] >= number_[parent])
      parts_[parent].push_back({servers_[child.node], is_server(child.node) && servers_[child.node] == 1});
  }

  void add_node(std::size_t node, std::size_t all) {
    if (is_server(node)) return;
    std::vector<Part> parts = parts_[node];
    std::size_t rest = all;
    for (const Part& part : parts) rest -= part.servers;
    // Of a root nothing is left.
    parts.push_back({rest, rest == 1 && is_lone_above(node)});
    add({.is_cable = false, .index = node}, parts);
  }

  /// Is what is above a node in the search just one server, the root?
  [[nodiscard]] bool is_lone_above(std::size_t node) const {
    return is_server(visited_[0]) && number_[node] == number_[visited_[0]] + 1;
  }

  void add_cable(std::size_t cable, std::size_t all) {
    const Cable& one = cabling_.cables[cable];
    const std::size_t lower = number_[one.a.node] > number_[one.b.node] ? one.a.node : one.b.node;
    const auto is_alone = [&](std::size_t node) {
      return is_server(node) && std::ranges::count_if(of_[node], [&](std::size_t each) {
                                  return cabling_.cables[each].up;
                                }) == 1;
    };
    const std::size_t upper = node_across(one, lower);
    add({.is_cable = true, .index = cable},
        {{servers_[lower], is_alone(lower)}, {all - servers_[lower], is_alone(upper)}});
  }

  void add(CutPoint point, std::vector<Part> parts) {
    std::erase_if(parts, [](const Part& part) { return part.servers == 0; });
    if (parts.size() < 2) return;
    std::ranges::sort(parts, [](const Part& x, const Part& y) {
      return std::pair(x.servers, !x.is_one_server) > std::pair(y.servers, !y.is_one_server);
    });
    point.parts = parts.size();
    for (std::size_t i = parts[0].servers > 1 || point.is_cable ? 1 : 0; i < parts.size(); ++i)
      point.cut_off += parts[i].servers;
    point.only_single_servers =
        std::all_of(parts.begin() + 1, parts.end(), [](const Part& part) { return part.is_one_server; });
    result_.push_back(point);
  }

  const Cabling& cabling_;
  std::vector<std::vector<std::size_t>> of_;
  std::vector<std::size_t> number_, low_, servers_;  ///< servers of a node and below it
  std::vector<std::vector<Part>> parts_;             ///< by node: those that only it joins
  std::vector<std::size_t> visited_, bridges_;       ///< since the root
  std::size_t count_ = 0;
  std::vector<CutPoint> result_;
};

}  // namespace

std::vector<CutPoint> cut_points(const Cabling& cabling) {
  return CutSearch(cabling).run();
}

}  // namespace hips::topology
