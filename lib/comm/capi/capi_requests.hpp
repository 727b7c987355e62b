#pragma once

#include "lib/comm/capi/capi.hpp"

namespace hips::comm::capi {

/// Makes a request and starts its call, or prepares one to be started; `*request` is set on success only.
Status start(const char* call, const CallArgs& args, hips_comm_t comm, hips_request_t* request);
inline Status start(const char* call, const Result<CallArgs>& args, hips_comm_t comm,
                    hips_request_t* request) {
  return args ? start(call, *args, comm, request) : args.error();
}
/// A started request of the allreduces of many vectors.
Status start_coalesced(std::span<const CoalescedBuffer> list, ReduceOp op, hips_comm_t comm,
                       hips_request_t* request);
Status prepare(const char* call, const Result<CallArgs>& args, hips_comm_t comm, hips_request_t* request);

}  // namespace hips::comm::capi
