#pragma once

#include <cstdint>
#include <vector>

#include <hips/plan.hpp>

#include "lib/plan/plan_builder.hpp"

namespace hips::plan {

/// The name of a message (include/hips/plan.hpp, Step).
struct MessageName {
  Rank from = -1, to = -1;
  std::int32_t lane = 0, stage = 0, round = 0;
};

/// A builder that also knows, from arithmetic, which messages of its plan other collectives need. One rank
/// can then prune its own program (prune/pruned_program.hpp) without the programs of the others.
///
/// Bcast and reduce ask for each message. Reduce-scatter and all-gather do not: where every rank owns blocks,
/// the former is the scatter phase and the latter the gather phase.
///
/// Threads  const calls from any thread.
class PrunableBuilder : public PlanBuilder {
 public:
  /// What program(rank).owned is.
  [[nodiscard]] virtual std::vector<BlockRange> owned(Rank rank) const = 0;

  /// Does a bcast of `root` need this message: does the sender have the root's values by then, and does the
  /// receiver not have them yet?
  [[nodiscard]] virtual bool kept_in_bcast(const MessageName& message, Rank root) const = 0;

  /// Does a reduce to `root` need this message: does its data reach the root?
  [[nodiscard]] virtual bool kept_in_reduce(const MessageName& message, Rank root) const = 0;
};

}  // namespace hips::plan
