#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <hips/topology.hpp>

namespace hips::topology {

/// A link of Topology::graph(): a server in use and its NIC, or -1, no NIC and the two switches as the graph names them, the lower first.
using LinkKey = std::tuple<std::int64_t, Rail, std::string, std::string>;
LinkKey key_of(const Graph& graph, const GraphLink& link);

/// What a cluster's description tells of switches and cables that its topology does not have. Plans do not need it.
struct ToldWiring {
  /// By switch of Topology::graph(): its name, "" of places of the shape that have no switch. Empty: names are those of the graph.
  std::vector<std::string> switch_names{};
  /// Numbers of switches that are not told: they and their cables are assumed.
  std::set<std::int64_t> assumed_switches{};
  /// Names of switches of the file, above the others, which the topology does not have: the assumed ones take their place. Topology
  /// files do not list them.
  std::vector<std::string> replaced_switches{};
  /// Numbers of network levels whose rate is not told.
  std::set<std::size_t> assumed_rates{};
  /// By network level: how many cables join two switches. Empty: one.
  std::vector<std::int64_t> level_cables{};
  /// Links that are other cables than those of their level: their rates in bytes/s, 0 of one that is down. None: the cable is missing
  /// and counts as down.
  std::map<LinkKey, std::vector<double>> cables{};

  /// Are the switches and cables those of the topology?
  [[nodiscard]] bool empty() const {
    return switch_names.empty() && assumed_switches.empty() && level_cables.empty() && cables.empty();
  }
  friend bool operator==(const ToldWiring&, const ToldWiring&) = default;
};

/// The name of a switch of the graph; "" of a place that has none.
const std::string& switch_name(const ToldWiring& told, const GraphNode& node);
/// The same, but of such a place the name in the graph.
const std::string& name_in_links(const ToldWiring& told, const GraphNode& node);

/// The network level of each link of Topology::graph(); 0 of those of a graph.
std::vector<std::size_t> levels_of_links(const Topology& topology);

/// By node of the graph: is it a server or above one?
std::vector<bool> those_in_use(const Graph& graph);

/// By link of `graph`, which is that of the topology: the rates of its cables, as ToldWiring::cables.
std::vector<std::vector<double>> cables_of_links(const Topology& topology, const Graph& graph,
                                                 const ToldWiring& told);

}  // namespace hips::topology
