#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "topology/discover/observation.hpp"
#include "topology/discover/placement.hpp"
#include "topology/topology_file.hpp"

namespace hips::topology {

/// The lines of a topology file that a draft says something of.
enum class DraftLine : std::uint8_t { kShape, kRanks, kRelay, kLevel, kNames, kDevices, kSwitches, kLink };

/// Why a line is as it is.
struct Remark {
  DraftLine line = DraftLine::kShape;
  std::size_t index = 0;  ///< which level or link
  std::string text{};
  bool guessed = true;  ///< nobody has measured it
};

/// A topology that fits what ranks see, and what of it is guessed.
struct Draft {
  TopologyFile file;
  Placement placement;  ///< by the file's servers
  std::vector<Remark> remarks;
  std::vector<std::string> notes;  ///< lines above the file
  bool fits = true;                ///< false: no family is wired like this, and the file names the nearest
};

/// Finds the family that is wired as what ranks see.
///
/// Subnets are switches, or cables where they have two NICs each and a torus or mesh has such. A switch, a
/// rack of rails, a BCube, Torus or mesh is taken only where the graph of servers and subnets is exactly
/// that one, whatever order servers and NICs have; a part of a BCube where NICs of one number are of one
/// level; a leaf-spine or Fat-Tree where subnets of equal size reach each other through routers, by the hops
/// between them. Networks that join all servers beside a server-centric one are left out, as management
/// networks. Where nothing fits the draft is a rack of the NICs that reach most servers, or one switch, and
/// says so.
///
/// Cost     that of place() for a few candidates.
/// Threads  pure; any thread.
/// Errors   kInvalidArgument: no server, or none with a NIC. kUnsupported: more servers than a Rank numbers.
Result<Draft> draft_topology(const Observation& seen);

/// The draft as a topology file (docs/topologies.md), with `# guessed: why` behind what nobody has measured.
/// parse_topology_file() reads it.
std::string draft_text(const Draft& draft);

}  // namespace hips::topology
