#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "topology/discover/observation.hpp"
#include "topology/discover/placement.hpp"
#include "topology/formats/topology_file.hpp"

namespace hips::topology {

/// The lines of a topology file that a draft can comment.
enum class DraftLine : std::uint8_t { kShape, kRanks, kRelay, kLevel, kNames, kDevices, kSwitches, kLink };

/// A comment that explains a line.
struct Remark {
  DraftLine line = DraftLine::kShape;
  std::size_t index = 0;  ///< which level or link
  std::string text{};
  bool guessed = true;  ///< not observed
};

/// A topology that matches the observation, with comments about what is guessed.
struct Draft {
  TopologyFile file;
  Placement placement;  ///< by the file's servers
  std::vector<Remark> remarks;
  std::vector<std::string> notes;  ///< lines above the file
  bool fits = true;                ///< false: no family has this wiring, and the file has the nearest
};

/// A family that something other than subnets and packets tells, as LLDP does, by the servers of the observation.
struct ToldTopology {
  Topology topology;
  Placement placement;
  std::vector<Remark> remarks;  ///< about its shape, switches and levels
  std::vector<std::string> notes;
};

/// Drafts what is told; the observation adds rates, latencies, NICs that do not work, names and devices.
///
/// Errors   those of draft_topology().
Result<Draft> draft_told(const Observation& seen, ToldTopology told);

/// Finds the family whose wiring matches the observation.
///
/// Subnets are switches, or cables if they have two NICs each and match those of a torus or mesh. A switch, a
/// rack of rails, a BCube, Torus or mesh must match the graph of servers and subnets exactly, in any order of
/// servers and NICs. A part of a BCube must have the NICs of one number on one level. A leaf-spine or
/// Fat-Tree must have subnets of equal size that reach each other through routers, and is found by the hops
/// between them. Networks that join all servers next to a server-centric one are left out as management
/// networks. If nothing matches, the draft is a rack of the NICs that reach most servers, or one switch, and
/// says so.
///
/// Cost     that of place() for a few candidates.
/// Threads  pure; any thread.
/// Errors   kInvalidArgument: no server, or none with a NIC. kUnsupported: more servers than a Rank numbers.
Result<Draft> draft_topology(const Observation& seen);

/// The draft as a topology file (docs/topologies.md), with `# guessed: why` on lines that were not observed.
/// parse_topology_file() reads it.
std::string draft_text(const Draft& draft);

}  // namespace hips::topology
