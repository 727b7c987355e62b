#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hips/export.hpp>
#include <hips/status.hpp>

namespace hips {

enum class Family : std::uint8_t {
  kBCube,
  kTorus,
  kFatTree,
  kLeafSpine,
  kRail,
  kSwitch,
  kMesh,
  kGraph,  ///< any other wiring, of which every cable is given: only topology files have it
};

/// How the servers of one group (those that differ in one digit only) are connected.
enum class LevelKind : std::uint8_t {
  kSwitch,  ///< by a switch of the group: any two in one hop
  kRing,    ///< by cables to the digits +1 and -1, with wrap; rails[0] is "+", rails[1] is "-"
  kLine,    ///< the same without wrap: the first server has no "-" neighbour and the last no "+" neighbour
  kTree,    ///< by one tier of a tree of switches; a single NIC serves all levels
  kNode,    ///< ranks of one server: shared memory, no NIC
};

/// One digit of a server's address: its radix and the rails that serve it.
struct Level {
  std::string name;  ///< "level 0", "x", "edge"
  std::int64_t radix = 0;
  LevelKind kind = LevelKind::kSwitch;
  /// Of every server: one in BCube, two in a Torus dimension, K in a rail rack, none in a node.
  std::vector<Rail> rails;
  double bandwidth_bytes_per_s = 0;  ///< of one rail, one direction
  double latency_ns = 0;             ///< of one hop
  friend bool operator==(const Level&, const Level&) = default;
};

/// 100 Gbit/s and 1 us: the rates of a spec that names none.
inline constexpr double kDefaultBandwidthBytesPerS = 12.5e9;
inline constexpr double kDefaultLatencyNs = 1000;

/// One hop between two neighbouring servers: out by a rail of one, in by a rail of the other.
struct Hop {
  Rank from = -1;
  Rank to = -1;
  Rail out = kNoRail;
  Rail in = kNoRail;
  std::int32_t level = -1;
  friend bool operator==(const Hop&, const Hop&) = default;
};

/// A node of the wiring: a server or a switch.
struct GraphNode {
  bool is_switch = false;
  std::int64_t id = 0;  ///< the number of a server, or of a switch among the switches
  std::string name;     ///< "<01>", "level 0 switch 2", "pod 1 edge 0"
};

/// A cable, full duplex; the same bandwidth in both directions.
struct GraphLink {
  std::int64_t a = 0, b = 0;                ///< indices of nodes
  Rail a_port = kNoRail, b_port = kNoRail;  ///< the NIC, if that end is a server
  double bandwidth_bytes_per_s = 0;
  double latency_ns = 0;
  bool up = true;
};

/// The whole wiring, one entry for each cable. Only tools build it, because it grows with the number of servers.
struct Graph {
  std::vector<GraphNode> nodes;
  std::vector<GraphLink> links;
};

/// A cable that differs from its level: slower, or down. Only topology files have them (docs/topologies.md).
struct LinkOverride {
  std::int64_t server =
      -1;               ///< at one end, by its number among those in use; -1: a cable between two switches
  Rail rail = kNoRail;  ///< the server's NIC
  std::string lower, upper;  ///< the switches as Graph names them, the one closer to the servers first
  double bandwidth_bytes_per_s = 0;
  bool up = true;
  friend bool operator==(const LinkOverride&, const LinkOverride&) = default;
};

struct GraphWiring;

/// The wiring of Family::kGraph, shared by copies; none of other families. Equal if the cables are.
struct HIPS_EXPORT WiringOfGraph {
  std::shared_ptr<const GraphWiring> value;
  HIPS_EXPORT friend bool operator==(const WiringOfGraph& a, const WiringOfGraph& b);
};

/// Servers, NICs and levels of a fabric. Its size does not grow with the fabric, except that of a graph: a million servers
/// take a few hundred bytes.
///
/// Shapes   rank r = a_0 + n_0*(a_1 + n_1*(a_2 + ...)), a_l the digit and n_l the radix of level l.
///          There are no levels of radix 1.
/// Units    bandwidth in bytes/s per rail and direction, latency in ns per hop.
/// Threads  a value; any thread.
/// Source   BCube: Guo et al., SIGCOMM 2009 (BCube(n,k) has levels 0..k); Fat-Tree: Al-Fares et al. 2008.
struct HIPS_EXPORT Topology {
  Family family = Family::kSwitch;
  /// Canonical: parse_topology(spec) is this topology. If no family's spec describes it, "file:PATH#DIGEST",
  /// which is rejected once the file has changed.
  std::string spec;
  std::string name;  ///< for messages: "BCube(3,1)"
  std::vector<Level> levels;
  Rail num_rails = 0;
  bool servers_relay = false;  ///< servers must forward for others (BCube, Torus, mesh)
  bool relay_off = false;      ///< servers may not forward at this site: plans use neighbours only
  std::int64_t num_switches = 0;
  std::int64_t num_links = 0;
  std::int32_t ranks_per_server = 1;  ///< if > 1, levels[0] is the kNode level
  /// Ordered by server and NIC, then cables between switches by name. No cable occurs twice.
  std::vector<LinkOverride> overrides;
  /// Servers in use, ascending, by their number in the whole topology; empty: all. Only these have ranks. Servers
  /// of a part do not relay, because servers between them may belong to another job.
  std::vector<std::int64_t> part;
  WiringOfGraph wiring;  ///< of a graph: one level with all servers, no overrides and no part

  /// The product of all radices, including the node level. For a part: the ranks in use.
  [[nodiscard]] Rank num_ranks() const;
  [[nodiscard]] Rank num_servers() const { return num_ranks() / ranks_per_server; }
  /// The number of servers that the levels describe, in use or not.
  [[nodiscard]] std::int64_t num_whole_servers() const;
  /// The number of a server in the whole topology; the same number if all are in use.
  [[nodiscard]] std::int64_t whole_server(std::int64_t server) const {
    return part.empty() ? server : part[static_cast<std::size_t>(server)];
  }
  /// The server with that number in the whole; -1: not in use.
  [[nodiscard]] std::int64_t server_in_use(std::int64_t whole_server) const;

  /// The digits a_0, a_1, ... of a rank, one for each level.
  [[nodiscard]] std::vector<std::int64_t> digits(Rank rank) const;
  /// -1: not in use.
  [[nodiscard]] Rank rank_of(std::span<const std::int64_t> digits) const;
  /// The rank that differs from `rank` in one digit only; -1: not in use.
  [[nodiscard]] Rank with_digit(Rank rank, std::int32_t level, std::int64_t digit) const;
  [[nodiscard]] std::int64_t digit(Rank rank, std::int32_t level) const;

  /// "<01>" as in the papers: highest level first, with dots if a radix is above 10; "(x,y)" in a Torus or
  /// mesh; "<01>:2" for rank 2 of a server with several ranks.
  [[nodiscard]] std::string address(Rank rank) const;

  /// All hops from `rank` to ranks that differ in one digit, ordered by level, digit and rail. For tools: one
  /// entry for each rail to each rank of each group.
  [[nodiscard]] std::vector<Hop> neighbours(Rank rank) const;

  /// The route from a to b; empty if a == b. One hop if they share a switch or a cable. Otherwise servers relay:
  /// the route corrects the digits from level 0 upwards and takes the shorter direction of a ring, "+" on a tie.
  /// The first hop out of a server ends at the local rank of b. On a rack it uses the first rail.
  [[nodiscard]] std::vector<Hop> route(Rank a, Rank b) const;

  /// All servers, switches and cables. Errors (thrown) kUnsupported above 2^22 cables.
  [[nodiscard]] Graph graph() const;
  friend bool operator==(const Topology&, const Topology&) = default;
};

/// Reads a topology spec.
///
/// Shapes   bcube:n,k | bcube:AxBx... (level 0 first) | torus:AxBx... | mesh:AxBx... | fattree:k |
///          leafspine:leaves,servers of each[,spines] | rail:servers,K | switch:n. Each may be followed by
///          "[0-3,7]", the servers in use; then by "@rate", the rate of every NIC (25Gb, 2.5Gb or 100Mb; bits
///          per second); then by "/m", m ranks on each server: bcube:3,1@25Gb/2. PATH.yaml, PATH.yml or
///          file:PATH name a topology file (docs/topologies.md); "/m" may follow the first two and
///          file:PATH.yaml.
/// Threads  any thread; pure, unless the spec names a file.
/// Errors   throws Error: kInvalidArgument names the spec, or file and line, the part, the value seen and
///          what would be right.
/// Example  Topology topology = parse_topology("bcube:3,1");
HIPS_EXPORT Topology parse_topology(std::string_view spec);

}  // namespace hips
