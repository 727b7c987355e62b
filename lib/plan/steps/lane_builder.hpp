#pragma once

#include <cstdint>
#include <vector>

#include <hips/plan.hpp>

#include "lib/plan/prunable.hpp"
#include "lib/plan/steps/lane_program.hpp"

namespace hips::plan {

/// A builder whose lanes are hierarchies (lane_program.hpp). It needs only the position of any rank;
/// programs, owned blocks and pruning follow from that.
///
/// **Pruning.** Let R_{i-1}(q) be the blocks that rank q works on at position i, and follow the root's vector
/// through the scatter: holder(i, q) is the rank that has R_{i-1}(q) when the vector has passed positions 0
/// to i-1. It starts as the root and moves at each position to the leader of the piece that q's own blocks
/// are in.
///
///   bcast    scatter at i: the holder sends to the leaders of its group. Gather at i: a rank receives what
///            it did not get in the scatter; the holder itself has all of R_{i-1}.
///   reduce   scatter: all messages. Gather at i: only the holder collects R_{i-1}: the reversed path of the
///            root.
///
/// On a ring a piece passes members between its source and its destination, which then have it, too.
///
/// Cost     program: see LaneProgram. kept_in_*: the square of the number of positions of the lane.
class LaneBuilder : public PrunableBuilder {
 public:
  [[nodiscard]] const PlanShape& shape() const final { return shape_; }
  [[nodiscard]] Program program(Rank rank) const final;
  [[nodiscard]] std::vector<BlockRange> owned(Rank rank) const final;
  [[nodiscard]] bool kept_in_bcast(const MessageName& message, Rank root) const final;
  [[nodiscard]] bool kept_in_reduce(const MessageName& message, Rank root) const final;

 protected:
  /// Position `index` of a lane as `rank` sees it. A lane has half as many positions as stages. Ranks that do
  /// not lead at an earlier position are not asked for a link.
  [[nodiscard]] virtual Position position(std::int32_t lane, std::int32_t index, Rank rank) const = 0;

  PlanShape shape_;  ///< set by the constructor of the derived class; a plan of one rank is shape_single()

 private:
  [[nodiscard]] std::int32_t num_positions(std::int32_t lane) const {
    return static_cast<std::int32_t>(shape_.lanes[static_cast<std::size_t>(lane)].stages.size() / 2);
  }
  [[nodiscard]] std::vector<Position> positions(std::int32_t lane, Rank rank) const;
  [[nodiscard]] Rank holder(std::int32_t lane, std::int32_t index, Rank root, Rank of) const;
  [[nodiscard]] std::int64_t holder_in_group(std::int32_t lane, std::int32_t index, Rank holder,
                                             Rank member) const;
};

}  // namespace hips::plan
