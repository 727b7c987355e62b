#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <hips/plan.hpp>

#include "lib/plan/steps/peer_link.hpp"
#include "lib/plan/steps/program_writer.hpp"

namespace hips::plan {

/// A lane that goes up a tree of servers and down again, seen from one rank.
///
/// Each of a server's m ranks handles one block of the lane, together with the ranks of the same local number
/// on the other servers:
///
///   local scatter   every rank reduces its block over the local ranks' vectors           (m > 1 only)
///   up              reduces what its children send, sends the sum to its parent
///   down            copies the result from its parent, sends it to its children
///   local gather    every rank sends its block to the other local ranks                  (m > 1 only)
///
/// Stages   those of tree_stages(), in this order.
/// Order    a rank reduces its own value and its children's in rank order.
struct TreePlace {
  std::int32_t lane = 0;
  BlockRange blocks;  ///< of the lane: m of them
  std::int64_t local = 0, num_local = 1;
  std::optional<PeerLink> parent;  ///< none at the root
  std::vector<PeerLink> children;  ///< by rank
};

enum class TreeStage : std::uint8_t { kLocalScatter, kUp, kDown, kLocalGather };

/// Stages of a lane over a tree, of a server with `num_local` ranks.
std::vector<StageInfo> tree_stages(std::int64_t num_local);

/// Describes stage number `stage`.
constexpr TreeStage tree_stage(std::int32_t stage, std::int64_t num_local) {
  return static_cast<TreeStage>(stage + (num_local > 1 ? 0 : 1));
}

/// The longest chain of messages of a tree of `depth` hops.
std::int32_t tree_steps(std::int64_t depth, std::int64_t num_local);

/// Appends the steps of all places, stage by stage over the lanes, and the blocks that `rank` owns.
///
/// Cost     a step for each child, parent and local rank of each lane.
void emit_trees(Rank rank, const std::vector<TreePlace>& places, ProgramWriter& writer);

}  // namespace hips::plan
