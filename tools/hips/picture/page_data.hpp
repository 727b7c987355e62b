#pragma once

#include <string>

#include <hips/plan.hpp>

#include "lib/cost/timeline.hpp"
#include "tools/hips/picture/holdings.hpp"
#include "topology/formats/topology_file.hpp"

namespace hips::picture {

/// The data that the page's script draws, as JSON in one line:
///
///   end             duration in ns
///   ranks, perServer, rails, blocks
///   servers[]       names
///   lanes[]         [first block, blocks]
///   messages[]      [from, to, lane, stage, phase (0 scatter, 1 gather), bytes, begin, end, first block,
///                   blocks, [[server, NIC, 1 out or 0 in, begin, end], ...]], by begin
///   sums[]          [number of ranks, "0-2,5"]
///   holdings[]      [from, rank, first block, blocks, index of a sum], by time
std::string page_data(const topology::TopologyFile& file, const Plan& plan, const cost::Timeline& timeline,
                      const Holdings& holdings);

}  // namespace hips::picture
