#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <hips/topology.hpp>

namespace hips::topology {

/// The wiring of some servers of a larger one.
struct JobWiring {
  Graph graph;  ///< the servers first, in ascending order; then switches, with relays as the last of them
  std::vector<std::int64_t> relays;  ///< servers outside the job that forward for it, ascending
};

/// Cuts the servers of a job (ascending) out of a wiring, with their NICs and the cables between them and the switches. Switches that
/// are left without a cable are left out.
///
/// Where the job is not connected so, servers outside it become relays: to the job they are switches, with the cables that they
/// need for it and their rates. As few join two components as possible, and those by as few cables; the choice is the same on every
/// run. Each relay is needed: without it the job is not connected. If they cannot connect it either, there are none.
///
/// Relays have the names of `names` (by server of the whole), made unique among the switches.
///
/// Cost     linear in nodes and cables, but for finding those of the job, if it needs no relays; else n log n.
/// Source   Mehlhorn 1988, doi:10.1016/0020-0190(88)90066-X: a spanning tree over the regions closest to each server.
JobWiring cut_out(const Graph& whole, std::span<const std::int64_t> servers,
                  std::span<const std::string> names);

}  // namespace hips::topology
