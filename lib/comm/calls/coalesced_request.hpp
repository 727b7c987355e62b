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
/// It starts all calls at once; Coalescer starts a few at a time. All ranks must start calls in the same order,
/// and a start in a test() of the request would depend on when each rank tests.
///
/// Owns     a copy of the list, and memory for all small vectors together, until the request is destroyed.
/// Errors   kInvalidArgument: what is wrong with which buffer; kOutOfMemory. Nothing is started then.
Result<std::unique_ptr<Request>> prepare_coalesced(Communicator& communicator,
                                                   std::span<const CoalescedBuffer> list, ReduceOp op);

}  // namespace hips::comm
