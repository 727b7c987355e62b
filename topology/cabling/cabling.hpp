#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "topology/distances.hpp"

namespace hips::topology {

/// A device that cables lead to: a server, a switch, or one that carries no data of jobs.
struct CabledNode {
  enum class Kind : std::uint8_t {
    kServer,
    kSwitch,
    kUnknown,  ///< the file does not tell: a server if it has few cables and none to another such node
  };
  std::string name{};  ///< as the file has it; of a server its host name
  Kind kind = Kind::kUnknown;
  std::int64_t line = 0;    ///< where the file names it first; 0: not known
  bool is_assumed = false;  ///< not told: this switch and its cables are assumed
};

/// One end of a cable.
struct CableEnd {
  std::size_t node = 0;  ///< index into Cabling::nodes
  std::string port{};    ///< "mlx5_0", "swp1", "7"; empty if the file does not tell
};

/// A cable between two nodes, full duplex.
struct Cable {
  CableEnd a{};
  CableEnd b{};
  double bandwidth_bytes_per_s = 0;  ///< one direction; 0: not known
  double latency_ns = 0;             ///< of one hop; 0: not known
  bool up = true;
  std::int64_t line = 0;         ///< of the file; 0: not known
  bool is_rate_assumed = false;  ///< not told, by this file or the one that it was made from

  [[nodiscard]] bool is_rate_told() const { return bandwidth_bytes_per_s > 0 && !is_rate_assumed; }
};

/// What cables of a tier are called: those of servers, those above leaf switches, those above spines.
inline constexpr std::string_view kCableTiers[] = {"leaf", "spine", "core"};

/// The cables of a cluster as a file lists them, in the file's order. Each cable occurs once, even if the file lists it from
/// both ends.
struct Cabling {
  std::vector<CabledNode> nodes;
  std::vector<Cable> cables;
  bool has_uplinks = true;        ///< false: the file tells the leaf switches only, not what joins them
  bool heard_by_servers = false;  ///< servers told the cables, each its own, and no switch did
  std::vector<double>
      tier_rates;  ///< bytes/s of cables whose rate the file does not tell, by tier; 0: assumed
  std::vector<std::string> notes;  ///< what was ignored or assumed, one line for each kind
};

/// The distance of each node from the servers: 0 of a server, 1 of a leaf switch, 2 of a spine switch, ...; SIZE_MAX: no cables lead
/// to servers. Cables that are down count. The kinds of all nodes are known.
///
/// Cost     linear in nodes and cables.
inline std::vector<std::size_t> distances_from_servers(const Cabling& cabling) {
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  for (const Cable& cable : cabling.cables) edges.emplace_back(cable.a.node, cable.b.node);
  std::vector<std::size_t> servers;
  for (std::size_t node = 0; node < cabling.nodes.size(); ++node)
    if (cabling.nodes[node].kind == CabledNode::Kind::kServer) servers.push_back(node);
  return distances(cabling.nodes.size(), edges, std::move(servers));
}

}  // namespace hips::topology
