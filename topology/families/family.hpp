#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <hips/topology.hpp>

#include "lib/base/result.hpp"
#include "topology/levels.hpp"
#include "topology/spec.hpp"

namespace hips::topology {

/// A family of topologies: how to read its specs, name its servers and wire it. A new family is one file that
/// defines such an entry, and one line in families.cpp.
struct FamilyEntry {
  Family family;
  std::string_view keyword;  ///< before the ":" of a spec
  std::string_view usage;    ///< "rail:servers,rails (such as rail:9,2)"

  std::string_view example;  ///< "rail:9,2"

  /// Makes the topology without rates and the node level, which parse() adds for all families.
  Result<Topology> (*make)(const Spec& spec);

  /// The address of the server with these digits, without that of the node level.
  std::string (*address)(const Topology& topology, std::span<const std::int64_t> digits);

  /// The name of the switch at a server's NIC, by the server's number in the whole; empty if cables lead from
  /// server to server.
  std::string (*switch_name)(const Topology& topology, std::int64_t server, Rail rail);

  /// Adds switches and cables to a graph of the servers, where node i is server i. All servers are in use.
  void (*wire)(const Topology& topology, Graph& graph);
};

extern const FamilyEntry kBCubeFamily;
extern const FamilyEntry kTorusFamily;
extern const FamilyEntry kMeshFamily;
extern const FamilyEntry kFatTreeFamily;
extern const FamilyEntry kLeafSpineFamily;
extern const FamilyEntry kRailFamily;
extern const FamilyEntry kSwitchFamily;
extern const FamilyEntry kGraphFamily;  ///< not in families(): no spec describes it

/// All families with specs, in the order in which they are listed to users.
std::span<const FamilyEntry* const> families();

const FamilyEntry& entry_of(Family family);

/// "<a_k...a_1a_0>", highest digit first, with dots between digits if a radix is above 10.
std::string digit_address(const Topology& topology, std::span<const std::int64_t> digits);

/// "<01>": the address of a server, without the local rank that Topology::address() adds if it has several.
std::string server_address(const Topology& topology, std::int64_t server);

/// Adds a switch and returns its node.
std::int64_t add_switch(const Topology& topology, Graph& graph, std::string name);

/// Sets the rates and states of the topology's overrides in a wired graph. Every family adds the end of a
/// cable at a server before that at a switch, the "+" end of a ring first, and the lower switch first.
void apply_overrides(const Topology& topology, Graph& graph);

/// Adds a cable between two nodes, with the rate of `level`.
void add_link(Graph& graph, const Level& level, std::int64_t a, Rail a_port, std::int64_t b, Rail b_port);

}  // namespace hips::topology
