#pragma once

#include <hips/plan.hpp>

#include "lib/base/collective.hpp"
#include "lib/base/result.hpp"

namespace hips::plan {

/// The part of an allreduce plan that another collective needs.
///
/// An allreduce moves the input of every rank to the output of every rank. Without the inputs that a
/// collective does not have and the outputs that it does not need, what is left of the plan is a plan for
/// that collective, over the same links and in the same order:
///
///   reduce_scatter   what leads to each block at its owner: the scatter phase
///   allgather        what leads from each block at its owner to all others: the gather phase
///   reduce           the scatter phase, and of the gather what leads to the root: a tree over all levels
///   gather           of the gather phase what leads to the root
///   scatter          of the scatter phase what moves the root's vector
///   bcast            of the scatter what moves the root's vector, then the gather, without messages to
///                    ranks that already have their content: a binomial tree from recursive doubling; from
///                    HiPS a scatter from level to level and an all-gather
///
/// In those that only move data one operand of a reduction has a value, so their reductions become copies,
/// and all their messages carry final values (Phase::kGather).
///
/// Memory of the calls: those that only move data work in place, input and output being one buffer that holds what
/// the rank contributes. Every rank of a reduce_scatter, and every rank of a reduce but the root, needs an
/// output of the whole vector for partial sums.
///
/// Shapes   `plan` is an allreduce without errors (check.hpp); the block map stays as it is.
/// Errors   kUnsupported: collectives with sections of a plan without owners() for all ranks; those that only move data of
///          a plan that moves ranges of which a rank has only a part. kInvalidArgument: the root
///          is out of range.
/// Cost     a few passes over the steps of all ranks. One rank alone: pruned_program.hpp.
/// Source   dead-code elimination. The binomial broadcast is the forward slice of recursive doubling, van de
///          Geijn's broadcast that of halving and doubling (Chan et al., "Collective communication", 2007).
Result<Plan> prune(const Plan& plan, Collective collective, Rank root = 0);

}  // namespace hips::plan
