#pragma once

#include "lib/comm/capi/capi.hpp"

namespace hips::comm::capi {

/// A request of a started call, or of one to be started; `*request` gets it on success.
Status start(const char* call, const CallArgs& args, hips_comm_t comm, hips_request_t* request);
inline Status start(const char* call, const Result<CallArgs>& args, hips_comm_t comm,
                    hips_request_t* request) {
  return args ? start(call, *args, comm, request) : args.error();
}
/// start() of an allreduce, which is short where it is the one of the spare request.
Status start_allreduce(const char* call, const AllreduceKey& key, hips_comm_t comm, hips_request_t* request);
Status prepare(const char* call, const Result<CallArgs>& args, hips_comm_t comm, hips_request_t* request);

}  // namespace hips::comm::capi
