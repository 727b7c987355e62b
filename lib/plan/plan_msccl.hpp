#pragma once

#include <iosfwd>

#include <hips/plan.hpp>

#include "lib/base/result.hpp"

namespace hips::plan {

/// Writes a plan as an algorithm of MSCCL's XML: an in-place allreduce whose chunks are the plan's blocks.
///
/// Each lane is a channel, and each (lane, peer, direction) a thread block of its own, whose steps run one
/// after the other: "s" sends, "r" receives, "rrc" receives and adds. What a step waits for in another thread
/// block stands in depid and deps; where that is more than one step, "nop" steps before it wait for the
/// others. The order in which operands are added is the plan's.
///
/// Shapes   plans of equal blocks: MSCCL has one chunk size.
/// Cost     the steps of one rank in memory at a time.
/// Errors   kUnsupported: lanes of unequal shares, or steps that move local data, which the format could hold
/// but
///          no builder makes.
/// Source   the algorithm files of MSCCL (microsoft/msccl-tools); Cowan et al., MSCCLang, ASPLOS 2023.
Status write_msccl(std::ostream& out, const PlanBuilder& builder);

}  // namespace hips::plan
