#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/plan/algorithms.hpp"
#include "lib/plan/lane_program.hpp"

/// What the algorithms that know no levels share.
namespace hips::plan {

/// How two ranks reach each other on the topology's own route; both NICs kNoRail inside a server.
Link routed_link(const Topology& topology, Rank rank, Rank peer);

/// Is every server one hop from every other?
bool all_are_neighbours(const Topology& topology);

/// The plan of a rank alone: one copy. `shape` gets a lane of one block.
void shape_single(PlanShape& shape);
Program program_single();

/// One lane over all ranks: a block map of equal blocks.
void shape_one_lane(PlanShape& shape, std::int64_t num_blocks, std::vector<StageInfo> stages);

/// Which options of a request an algorithm takes.
struct TakesOptions {
  bool patterns = false, leaders = false, rings = false;
};

/// Fails when the request has options that mean nothing to `algorithm`.
Status refuse_foreign_options(std::string_view algorithm, const PlanRequest& request, TakesOptions takes);

}  // namespace hips::plan
