#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hips/topology.hpp>

#include "topology/cabling/cabling.hpp"

namespace hips::topology {

/// How to disguise a topology.
struct Disguise {
  std::size_t servers_missing = 0;
  std::size_t cables_missing = 0;
  std::size_t cables_down = 0;
  std::size_t cables_slow = 0;
  bool kinds_known = true;
  bool names_alike = false;  ///< servers and switches are called "d5", not "n5" and "s5"
};

/// "<01>:0 to level 0 switch 1"
inline std::string link_words(const Graph& graph, const GraphLink& link) {
  const auto end = [&](std::int64_t node, Rail port) {
    const std::string& name = graph.nodes[static_cast<std::size_t>(node)].name;
    return port == kNoRail ? name : fmt::format("{}:{}", name, port);
  };
  return end(link.a, link.a_port) + " to " + end(link.b, link.b_port);
}

/// The cables of a topology in random order, with random names, ports and ends. Removes servers and cables only as long as the
/// cables join all servers.
class CablingShuffle {
 public:
  explicit CablingShuffle(std::mt19937_64& random) : random_(random) {}

  Cabling run(const Topology& topology, const Disguise& disguise) {
    const Graph graph = topology.graph();
    std::set<std::size_t> nodes, cables;
    remove(graph, static_cast<std::size_t>(topology.num_servers()), disguise, nodes, cables);
    removed_servers_ = nodes;
    removed_cables_ = static_cast<std::size_t>(std::ranges::count_if(cables, [&](std::size_t cable) {
      const GraphLink& link = graph.links[cable];
      return !nodes.contains(static_cast<std::size_t>(link.a)) &&
             !nodes.contains(static_cast<std::size_t>(link.b));
    }));
    std::vector<std::size_t> order(graph.nodes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::shuffle(order, random_);
    Cabling cabling;
    std::vector<std::size_t> number(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      const GraphNode& node = graph.nodes[order[i]];
      if (nodes.contains(order[i])) continue;
      number[order[i]] = cabling.nodes.size();
      const char* letter = disguise.names_alike ? "d" : node.is_switch ? "s" : "n";
      cabling.nodes.push_back({.name = letter + std::to_string(i),
                               .kind = !disguise.kinds_known ? CabledNode::Kind::kUnknown
                                                             : (node.is_switch ? CabledNode::Kind::kSwitch
                                                                               : CabledNode::Kind::kServer)});
    }
    for (std::size_t i = 0; i < graph.links.size(); ++i) {
      const GraphLink& link = graph.links[i];
      const auto a = static_cast<std::size_t>(link.a), b = static_cast<std::size_t>(link.b);
      if (cables.contains(i) || nodes.contains(a) || nodes.contains(b)) continue;
      Cable cable{.a = {number[a], port()}, .b = {number[b], port()}};
      if (random_() % 2 == 0) std::swap(cable.a, cable.b);
      cable.bandwidth_bytes_per_s = link.bandwidth_bytes_per_s;
      cable.latency_ns = link.latency_ns;
      cable.up = link.up;
      cabling.cables.push_back(cable);
    }
    std::ranges::shuffle(cabling.cables, random_);
    for (std::size_t i = 0; i < disguise.cables_down && i < cabling.cables.size(); ++i)
      cabling.cables[i].up = false;
    for (std::size_t i = 0; i < disguise.cables_slow && i < cabling.cables.size(); ++i)
      cabling.cables[cabling.cables.size() - 1 - i].bandwidth_bytes_per_s /= 4;
    return cabling;
  }

  /// What run() removed the last time.
  [[nodiscard]] std::size_t removed() const { return removed_.size(); }
  /// The servers among them, by their numbers.
  [[nodiscard]] const std::set<std::size_t>& removed_servers() const { return removed_servers_; }
  /// The number of cables among them that are not those of removed servers.
  [[nodiscard]] std::size_t removed_cables() const { return removed_cables_; }
  /// What run() removed, in words: "server <3>, <5>:0 to leaf 1".
  [[nodiscard]] std::string removed_words() const { return fmt::format("{}", fmt::join(removed_, ", ")); }

 private:
  std::string port() { return "p" + std::to_string(random_() % 1000); }

  void remove(const Graph& graph, std::size_t servers, const Disguise& disguise, std::set<std::size_t>& nodes,
              std::set<std::size_t>& cables) {
    removed_.clear();
    for (std::size_t i = 0; i < disguise.servers_missing + disguise.cables_missing; ++i) {
      std::set<std::size_t>& from = i < disguise.servers_missing ? nodes : cables;
      const std::size_t one = random_() % (i < disguise.servers_missing ? servers : graph.links.size());
      if (!from.insert(one).second) continue;
      if (nodes.size() + 2 <= servers && is_joined(graph, servers, nodes, cables)) {
        removed_.push_back(i < disguise.servers_missing ? "server " + graph.nodes[one].name
                                                        : link_words(graph, graph.links[one]));
      } else {
        from.erase(one);
      }
    }
  }

  static bool is_joined(const Graph& graph, std::size_t servers, const std::set<std::size_t>& nodes,
                        const std::set<std::size_t>& cables) {
    std::vector<std::vector<std::size_t>> near(graph.nodes.size());
    for (std::size_t i = 0; i < graph.links.size(); ++i) {
      const auto a = static_cast<std::size_t>(graph.links[i].a),
                 b = static_cast<std::size_t>(graph.links[i].b);
      if (cables.contains(i) || nodes.contains(a) || nodes.contains(b)) continue;
      near[a].push_back(b);
      near[b].push_back(a);
    }
    std::size_t first = 0;
    while (nodes.contains(first)) ++first;
    std::vector<bool> reached(near.size(), false);
    std::vector<std::size_t> next{first};
    reached[first] = true;
    while (!next.empty()) {
      const std::size_t node = next.back();
      next.pop_back();
      for (const std::size_t other : near[node]) {
        if (!reached[other]) next.push_back(other);
        reached[other] = true;
      }
    }
    for (std::size_t server = 0; server < servers; ++server)
      if (!nodes.contains(server) && !reached[server]) return false;
    return true;
  }

  std::mt19937_64& random_;
  std::vector<std::string> removed_;
  std::set<std::size_t> removed_servers_;
  std::size_t removed_cables_ = 0;
};

}  // namespace hips::topology
