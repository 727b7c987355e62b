#include "lib/comm/capi/capi_requests.hpp"

#include <utility>

#include <fmt/format.h>

namespace hips::comm::capi {
namespace {

Result<std::unique_ptr<hips_request>> fresh_request(const CallArgs& args, Shared& shared) {
  auto prepared = shared.communicator->prepare_request(args);
  if (!prepared) return fail(prepared.error());
  return std::make_unique<hips_request>(hips_request{.shared = {}, .call = std::move(*prepared), .last = {}});
}

/// Makes the request one of `shared`, for the call that it was renewed for.
void adopt(hips_request& request, const CallArgs& args, Shared& shared, bool persistent) {
  request.shared = SharedHold(shared);
  request.reusable = !is_user(args.op);
  request.persistent = persistent;
  request.last = {};
}

/// Starts the call of `made`, and gives it to whoever called.
Status start_and_hand_out(std::unique_ptr<hips_request> made, hips_request_t* request) {
  Status status = made->call->start();
  if (status.ok()) *request = made.release();
  return status;
}

/// The request is no longer used; kept for the next where there is room.
void retire(hips_request_t& request) {
  hips_request* old = std::exchange(request, nullptr);
  if (old == nullptr) return;
  // Its communicator goes with the last of these, and takes a spare request along.
  const SharedHold shared = std::move(old->shared);
  if (old->reusable) old = shared->swap_spare(old);
  if (old != nullptr) delete old;  // NOLINT: what was handed out belongs to us again
}

/// Waits for the call of a request that may be null, and ends the request unless it is persistent.
Status end_call(hips_request_t& request) {
  if (request == nullptr) return Status::success();
  Status status = request->call->wait();
  if (!request->persistent) retire(request);
  return status;
}

}  // namespace

Shared::Shared(std::unique_ptr<Communicator> made)
    : communicator(std::move(made)),
      single_(communicator->origin().options.thread_mode == ThreadMode::kSingle) {}

Shared::~Shared() {
  delete spare_.load();
}

Status start(const char* call, const CallArgs& args, hips_comm_t comm, hips_request_t* request) {
  if (request == nullptr) return null_argument(call, "request");
  Shared& shared = *comm->shared;
  std::unique_ptr<hips_request> made(shared.swap_spare(nullptr));
  if (made) {
    if (Status status = made->call->renew(args); !status.ok()) return status;
  } else {
    auto fresh = fresh_request(args, shared);
    if (!fresh) return fresh.error();
    made = std::move(*fresh);
  }
  adopt(*made, args, shared, false);
  return start_and_hand_out(std::move(made), request);
}

Status start_allreduce(const char* call, const AllreduceKey& key, hips_comm_t comm, hips_request_t* request) {
  if (request == nullptr) return null_argument(call, "request");
  Shared& shared = *comm->shared;
  std::unique_ptr<hips_request> made(shared.swap_spare(nullptr));
  if (made && made->last == key) {
    made->shared = SharedHold(shared);
    return start_and_hand_out(std::move(made), request);
  }
  if (made) made.reset(shared.swap_spare(made.release()));
  Status status = start(call,
                        Communicator::allreduce_args(key.in == HIPS_IN_PLACE ? key.out : key.in, key.out,
                                                     key.count, key.type, key.op),
                        comm, request);
  // Not of a function of the program, which may be another one by the next time.
  if (status.ok() && (*request)->reusable) (*request)->last = key;
  return status;
}

Status prepare(const char* call, const Result<CallArgs>& args, hips_comm_t comm, hips_request_t* request) {
  if (!args) return args.error();
  if (request == nullptr) return null_argument(call, "request");
  auto made = fresh_request(*args, *comm->shared);
  if (!made) return made.error();
  adopt(**made, *args, *comm->shared, true);
  *request = made->release();
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
