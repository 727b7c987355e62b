#pragma once

#include <string_view>

#include <hips/plan.hpp>

#include "lib/base/result.hpp"

namespace hips::plan {

/// Is the text of a plan in MSCCL's XML rather than in JSON?
bool is_msccl(std::string_view text);

/// Reads an algorithm in MSCCL's XML, as write_msccl() and msccl-tools write it, as a plan.
///
/// A channel becomes a lane, a chunk a block, and the steps of each thread block keep their order. A step
/// that receives and sends becomes two steps. Sums that are only passed on are stored in scratch. A step is
/// cut into pieces where some of its chunks still have their first value and others do not, because a plan
/// distinguishes input from output.
///
/// Shapes   allreduce of any number of GPUs; chunks stay in place: the same offset at both ends, of the
///          input, of the output or, if inplace is 1, of both as one buffer. NICs are not set: see
///          set_rails().
/// Cost     linear in the steps and in the chunks they name.
/// Threads  pure; any thread.
/// Errors   kInvalidArgument: line, element, attribute, the value seen and what would be right. kUnsupported:
///          another collective, or chunks that move. check() proves whether the plan is correct.
/// Source   microsoft/msccl-tools, msccl/language/ir.py; Cowan et al., MSCCLang, ASPLOS 2023.
Result<Plan> read_msccl(std::string_view text);

}  // namespace hips::plan
