#pragma once

#include <string_view>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/base/result.hpp"

namespace hips::plan {

/// Is this text, a plan in some format, MSCCL's XML rather than JSON?
bool is_msccl(std::string_view text);

/// Reads an algorithm of MSCCL's XML, as write_msccl() or msccl-tools make them, as a plan.
///
/// A channel becomes a lane, a chunk a block, and each thread block's steps keep their order. Steps that
/// receive and send become two, sums that are only passed on stand in scratch. What one step of the format
/// moves is cut where some of its chunks have their first value at an end and others have not, for plans tell
/// input from output.
///
/// Shapes   allreduce of any number of GPUs; chunks stay in place: the same offset at both ends, of the
/// input, of
///          the output or, where inplace is 1, of both as one buffer. NICs are left open: set_rails().
/// Cost     linear in the steps and in the chunks they name.
/// Threads  pure; any thread.
/// Errors   kInvalidArgument: line, element, attribute, the value seen and what would be right. kUnsupported:
///          another collective, or chunks that move. That the plan is right is for the checker to say.
/// Source   microsoft/msccl-tools, msccl/language/ir.py; Cowan et al., MSCCLang, ASPLOS 2023.
Result<Plan> read_msccl(std::string_view text);

/// Gives every message that names no NIC the one of the topology's way, lanes in turn over the rails of a
/// rack, and says whether all messages are one hop.
void set_rails(const Topology& topology, Plan& plan);

}  // namespace hips::plan
