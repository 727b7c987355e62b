#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <hips/plan.hpp>

#include "lib/plan/lane_program.hpp"
#include "lib/plan/program_writer.hpp"

namespace hips::plan {

/// A lane that goes up a tree of servers and down again, seen from one rank.
///
/// Each of a server's m ranks carries one block of the lane, over the ranks with its local number elsewhere:
///
///   local scatter   every rank folds its block of the local ranks' vectors               (m > 1 only)
///   up              folds what its children send, sends the sum to its parent
///   down            copies the result from its parent, sends it to its children
///   local gather    every rank sends its block to the local others                       (m > 1 only)
///
/// Stages   those of tree_stages(), in this order.
/// Order    a rank folds its own value and its children's by rank.
struct TreePlace {
  std::int32_t lane = 0;
  BlockRange blocks;  ///< of the lane: m of them
  std::int64_t local = 0, num_local = 1;
  std::optional<Link> parent;  ///< none at the root
  std::vector<Link> children;  ///< by rank
};

/// Stages of a lane over a tree, of a server with `num_local` ranks.
std::vector<StageInfo> tree_stages(std::int64_t num_local);

/// The longest chain of messages of a tree of `depth` hops.
std::int32_t tree_steps(std::int64_t depth, std::int64_t num_local);

/// Appends the steps of all places, stage by stage over the lanes, and the blocks that `rank` owns.
///
/// Cost     a step for each child, parent and local rank of each lane.
void emit_trees(Rank rank, const std::vector<TreePlace>& places, ProgramWriter& writer);

}  // namespace hips::plan
