#pragma once

#include <iosfwd>

#include <hips/plan.hpp>

#include "lib/base/result.hpp"
#include "lib/plan/plan_builder.hpp"

namespace hips::plan {

/// Writes a plan as an algorithm in MSCCL's XML: an in-place allreduce whose chunks are the plan's blocks.
///
/// Each lane is a channel. Each (lane, peer, direction) is a thread block, whose steps run one after the
/// other: "s" sends, "r" receives, "rrc" receives and adds. depid and deps name the step of another thread
/// block that a step waits for; if it waits for several, "nop" steps before it wait for the others. Operands
/// are added in the plan's order.
///
/// Shapes   plans of equal blocks: MSCCL has one chunk size.
/// Cost     the steps of one rank in memory at a time.
/// Errors   kUnsupported: lanes of unequal shares, or steps that move local data, which the format supports
///          but no builder makes.
/// Source   the algorithm files of MSCCL (microsoft/msccl-tools); Cowan et al., MSCCLang, ASPLOS 2023.
Status write_msccl(std::ostream& out, const PlanBuilder& builder);

}  // namespace hips::plan
