#pragma once

#include <memory>
#include <span>

#include "lib/base/result.hpp"
#include "lib/comm/calls/buckets.hpp"
#include "lib/comm/calls/request.hpp"
#include "lib/comm/communicator.hpp"

namespace hips::comm {

/// Makes a request of the allreduces of many vectors; its start() starts them all. It is complete when all of
/// them are.
///
/// All calls are started at once, and not a few at a time as Coalescer does: calls take place in the order in
/// which they were started, on all ranks alike, and when a rank tests its requests is its own affair.
///
/// Owns     a copy of the list, and memory for all small vectors together, until the request is destroyed.
/// Errors   kInvalidArgument: what is wrong with which buffer; kOutOfMemory. Nothing is started then.
Result<std::unique_ptr<Request>> prepare_coalesced(Communicator& communicator,
                                                   std::span<const CoalescedBuffer> list, ReduceOp op);

}  // namespace hips::comm
