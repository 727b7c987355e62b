#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <hips/topology.hpp>

#include "lib/base/result.hpp"
#include "topology/spec.hpp"

namespace hips::topology {

/// A family of topologies: how its specs read, how its servers are called, how it is wired. A new family is
/// one file that defines such an entry and one line in families.cpp.
struct FamilyEntry {
  Family family;
  std::string_view keyword;  ///< before the ":" of a spec
  std::string_view usage;    ///< "rail:servers,rails (such as rail:9,2)"

  std::string_view example;  ///< "rail:9,2"

  /// Everything but the rates and the node level, which all families share and parse() adds.
  Result<Topology> (*make)(const Spec& spec);

  /// Address of the server with these digits, the node level left out.
  std::string (*address)(const Topology& topology, std::span<const std::int64_t> digits);

  /// Name of the switch that a server's NIC is plugged into, by the server's number in the whole; empty where
  /// cables lead from server to server.
  std::string (*switch_name)(const Topology& topology, std::int64_t server, Rail rail);

  /// Adds switches and cables to a graph that holds the servers, node i being server i; all are in use.
  void (*wire)(const Topology& topology, Graph& graph);
};

extern const FamilyEntry kBCubeFamily;
extern const FamilyEntry kTorusFamily;
extern const FamilyEntry kMeshFamily;
extern const FamilyEntry kFatTreeFamily;
extern const FamilyEntry kLeafSpineFamily;
extern const FamilyEntry kRailFamily;
extern const FamilyEntry kSwitchFamily;

/// All families, in the order in which they are listed to users.
std::span<const FamilyEntry* const> families();

const FamilyEntry& entry_of(Family family);

/// "<a_k...a_1a_0>", highest digit first, with dots between them where a radix is above 10.
std::string digit_address(const Topology& topology, std::span<const std::int64_t> digits);

/// "<01>": the address of a server, without the rank that Topology::address() adds where it has several.
std::string server_address(const Topology& topology, std::int64_t server);

/// The level that serves the servers' first digit: 1 where there is a node level, else 0.
inline std::int32_t first_network_level(const Topology& topology) {
  return topology.ranks_per_server > 1 ? 1 : 0;
}

/// Levels without the node level.
inline std::span<const Level> network_levels(const Topology& topology) {
  return std::span(topology.levels).subspan(static_cast<std::size_t>(first_network_level(topology)));
}

/// Do cables lead from server to server in this level? rails[0] is then "+" and rails[1] "-".
inline bool is_of_cables(const Level& level) {
  return level.kind == LevelKind::kRing || level.kind == LevelKind::kLine;
}

/// The share of a level's NICs that lead somewhere: on a line the two ends have one NIC too many.
inline double share_of_nics_in_use(const Level& level) {
  return level.kind == LevelKind::kLine
             ? static_cast<double>(level.radix - 1) / static_cast<double>(level.radix)
             : 1;
}

/// Is the topology, or a dimension of it, a line of cables? Such are no hierarchy of rings or switches.
inline bool has_lines(const Topology& topology) {
  return std::ranges::any_of(topology.levels,
                             [](const Level& level) { return level.kind == LevelKind::kLine; });
}

/// Adds a switch and returns its node.
std::int64_t add_switch(const Topology& topology, Graph& graph, std::string name);

/// Gives the cables of a wired graph the rates and states of the topology's overrides. Every family adds a
/// cable's end at a server before that at a switch, a ring's "+" end first, and the lower switch first.
void apply_overrides(const Topology& topology, Graph& graph);

/// Adds a cable between two nodes, with the rate of `level`.
void add_link(Graph& graph, const Level& level, std::int64_t a, Rail a_port, std::int64_t b, Rail b_port);

}  // namespace hips::topology
