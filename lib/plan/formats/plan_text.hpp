#pragma once

#include <cstdint>
#include <string>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

namespace hips::plan {

/// The size of the vector, for the bytes in a text.
struct TextVolume {
  std::int64_t count = 0;  ///< elements
  std::int64_t element_bytes = 4;
};

/// Describes what all ranks have in common: the lanes with their shares, orders of levels and patterns.
///
///   HiPS, 2 lanes, mesh on both levels
///   BCube(3,1), 9 ranks, 64 MiB, 18 blocks, 4 steps
///   lane 0: blocks 0-8, 1/2 of the vector; scatter level 0 mesh, level 1 mesh; gather level 1 mesh, ...
///
/// Cost     lanes times levels, for any number of ranks.
std::string shape_text(const PlanShape& shape, const Topology& topology, TextVolume volume);

/// Describes what one rank does: a line for each message that it sends and for each reduction and copy, in
/// the order of the program.
///
///   server <01>, lane 0
///   server <01>: gather stage 3, level 0, to <00>: blocks 3-5, 1.3 MiB, NIC 0
///   server <01>: gather stage 3, level 0, from <02>: blocks 6-8, 1.3 MiB, NIC 0
std::string program_text(const PlanShape& shape, const Program& program, const Topology& topology,
                         TextVolume volume);

/// "512 B", "1.3 MiB", "64 MiB": powers of 1024, as in the sizes that people type.
std::string bytes_text(std::int64_t bytes);

}  // namespace hips::plan
