#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <hips/plan.hpp>

#include "lib/plan/prunable.hpp"
#include "lib/plan/steps/tree_program.hpp"

namespace hips::plan {

/// A builder whose lanes are trees of servers (tree_program.hpp). It needs only the place of any rank;
/// programs, owned blocks and pruning follow from that.
///
/// **Pruning.** For a bcast the root's block travels up to the top of its tree and down to all servers that
/// it has not passed. For a reduce all blocks travel up, and down only on the way to the root's server.
///
/// Cost     program: see emit_trees(). kept_in_*: the depth of the tree.
class TreeBuilder : public PrunableBuilder {
 public:
  [[nodiscard]] const PlanShape& shape() const final { return shape_; }
  [[nodiscard]] Program program(Rank rank) const final;
  [[nodiscard]] std::vector<BlockRange> owned(Rank rank) const final;
  [[nodiscard]] bool kept_in_bcast(const MessageName& message, Rank root) const final;
  [[nodiscard]] bool kept_in_reduce(const MessageName& message, Rank root) const final;

 protected:
  [[nodiscard]] virtual TreePlace place(std::int32_t lane, Rank rank) const = 0;
  /// The parent of place(lane, rank); -1 at the top.
  [[nodiscard]] virtual Rank parent(std::int32_t lane, Rank rank) const = 0;
  /// Ranks of a server, which have consecutive numbers.
  [[nodiscard]] virtual std::int64_t num_local() const = 0;

  PlanShape shape_;  ///< set by the constructor of the derived class; a plan of one rank is shape_single()

 private:
  [[nodiscard]] bool is_below(std::int32_t lane, Rank root, Rank top) const;
};

}  // namespace hips::plan
