#pragma once

#include <vector>

#include <hips/plan.hpp>

#include "lib/base/collective.hpp"
#include "lib/base/result.hpp"

namespace hips::plan {

/// The part of an allreduce plan that another collective needs.
///
/// An allreduce moves the input of every rank into the output of every rank. Leave out the inputs that a
/// collective does not have and the outputs that nobody asked for, and what is left of the plan is a plan for
/// the collective, over the same links and in the same order:
///
///   reduce_scatter   what leads to each block at its owner: the scatter phase
///   allgather        what leads from each block at its owner to all others: the gather phase
///   reduce           the scatter phase, and of the gather what leads to the root: a tree of all levels
///   bcast            of the scatter what carries the root's vector, then the gather, without what would
///   bring
///                    a block to a rank that has it: from recursive doubling a binomial tree, from HiPS a
///                    scatter from level to level and an allgather
///
/// Of two values that would be folded only one is there in bcast and allgather, so their reductions become
/// copies, and all their messages final values (Phase::kGather).
///
/// Memory of the calls: bcast and allgather work in place, `in` and `out` being one buffer that holds what
/// the rank contributes; a rank that is not the root of a reduce, and every rank of a reduce_scatter, needs
/// an output of the whole vector for partial sums.
///
/// Shapes   `plan` is an allreduce without errors (check.hpp); block maps stay as they are.
/// Errors   kUnsupported: reduce_scatter and allgather of a plan in which some block has not one owner, or
///          some rank owns none (`owners()` says it, too); bcast and allgather of one that moves ranges of
///          which a rank has a part. kInvalidArgument: no such root.
/// Cost     a few passes over the steps of all ranks.
/// Source   dead-code elimination; binomial broadcast is the forward slice of recursive doubling, van de
///          Geijn's that of halving and doubling (Chan et al., "Collective communication", 2007).
Result<Plan> excerpt(const Plan& plan, Collective collective, Rank root = 0);

/// The rank that computes each block. Errors: as above.
Result<std::vector<Rank>> owners(const Plan& plan);

}  // namespace hips::plan
