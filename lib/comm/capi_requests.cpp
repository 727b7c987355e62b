#include "lib/comm/capi_requests.hpp"

#include <utility>

#include <fmt/format.h>

namespace hips::comm::capi {
namespace {

/// `made`: a request that is not started; `request` is where it will go.
Status make_request(const char* call, const CallArgs& args, hips_comm_t comm, const hips_request_t* request,
                    std::unique_ptr<hips_request>& made) {
  if (request == nullptr) return null_argument(call, "request");
  Shared& shared = *comm->shared;
  made.reset(shared.spare.exchange(nullptr, std::memory_order_acq_rel));
  if (made) {
    if (Status status = made->call->renew(args); !status.ok()) return status;
  } else {
    auto prepared = shared.communicator->prepare_request(args);
    if (!prepared) return prepared.error();
    made = std::make_unique<hips_request>(hips_request{nullptr, std::move(*prepared)});
  }
  made->shared = comm->shared;
  made->reusable = !is_user(args.op);
  return Status::success();
}

/// The request is no longer used; kept for the next where there is room.
void retire(hips_request_t& request) {
  std::unique_ptr<hips_request> old(std::exchange(request, nullptr));
  if (!old) return;
  // Its communicator goes with the last of these, and takes a spare request along.
  const std::shared_ptr<Shared> shared = std::move(old->shared);
  if (!old->reusable) {
    old.reset();
    return;
  }
  old.reset(shared->spare.exchange(old.release(), std::memory_order_acq_rel));
}

/// Waits for the call of a request that may be null, and ends the request unless it is persistent.
Status end_call(hips_request_t& request) {
  if (request == nullptr) return Status::success();
  Status status = request->call->wait();
  if (!request->persistent) retire(request);
  return status;
}

}  // namespace

Shared::~Shared() {
  delete spare.load();
}

Status start(const char* call, const CallArgs& args, hips_comm_t comm, hips_request_t* request) {
  std::unique_ptr<hips_request> made;
  if (Status status = make_request(call, args, comm, request, made); !status.ok()) return status;
  made->persistent = false;
  Status status = made->call->start();
  if (status.ok()) *request = made.release();
  return status;
}

Status prepare(const char* call, const Result<CallArgs>& args, hips_comm_t comm, hips_request_t* request) {
  if (!args) return args.error();
  std::unique_ptr<hips_request> made;
  if (Status status = make_request(call, *args, comm, request, made); !status.ok()) return status;
  made->persistent = true;
  *request = made.release();
  return Status::success();
}

}  // namespace hips::comm::capi

extern "C" {

using namespace hips::comm::capi;  // NOLINT: the C API is part of it
using hips::Code;
using hips::Status;

hips_status_t hips_start(hips_request_t request) {
  return guarded([&]() -> Status {
    if (request == nullptr) return null_argument("hips_start", "request");
    if (!request->persistent)
      return Status::error(
          Code::kInvalidArgument,
          "hips_start: the request is of a hips_i...() call, which has started it; persistent "
          "ones come from hips_..._init()");
    return request->call->start();
  });
}

hips_status_t hips_test(hips_request_t* request, int* done) {
  return guarded([&]() -> Status {
    if (request == nullptr || done == nullptr)
      return null_argument("hips_test", request == nullptr ? "request" : "done");
    if (*request != nullptr && !(*request)->call->test()) {
      *done = 0;
      return Status::success();
    }
    *done = 1;
    return end_call(*request);
  });
}

hips_status_t hips_wait(hips_request_t* request) {
  return guarded([&]() -> Status {
    if (request == nullptr) return null_argument("hips_wait", "request");
    return end_call(*request);
  });
}

hips_status_t hips_waitall(size_t count, hips_request_t* requests) {
  return guarded([&]() -> Status {
    if (count > 0 && requests == nullptr) return null_argument("hips_waitall", "requests");
    Status first;
    for (size_t i = 0; i < count; ++i) {
      Status status = end_call(requests[i]);
      if (first.ok()) first = std::move(status);
    }
    return first;
  });
}

hips_status_t hips_request_free(hips_request_t* request) {
  return guarded([&]() -> Status {
    if (request == nullptr) return null_argument("hips_request_free", "request");
    if (*request != nullptr && (*request)->call->active())
      return Status::error(Code::kInvalidArgument,
                           "hips_request_free: the request's call is under way; wait for it first");
    retire(*request);
    return Status::success();
  });
}

}  // extern "C"
