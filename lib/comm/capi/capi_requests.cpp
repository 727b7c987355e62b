#include "lib/comm/capi/capi_requests.hpp"

#include <sched.h>

#include <ctime>
#include <utility>

#include <fmt/format.h>

#include "lib/base/wait/clock.hpp"
#include "lib/comm/calls/coalesced_request.hpp"
#include "lib/comm/fork_guard.hpp"
#include "lib/comm/setup/spare_communicators.hpp"

namespace hips::comm::capi {
namespace {

Result<std::unique_ptr<hips_request>> fresh_request(const CallArgs& args, Shared& shared) {
  auto prepared = shared.communicator->prepare_request(args);
  if (!prepared) return fail(prepared.error());
  auto request = std::make_unique<hips_request>();
  request->call = std::move(*prepared);
  request->shared = SharedHold(shared);
  request->reusable = !is_user(args.op);
  return request;
}

Status start_call(hips_request& request) {
  Status status = request.call->start();
  if (status.ok()) request.outstanding = true;
  return status;
}

/// Starts the call of `made`, and gives the caller the request.
Status start_and_hand_out(std::unique_ptr<hips_request> made, hips_request_t* request) {
  Status status = start_call(*made);
  if (status.ok()) *request = made.release();
  return status;
}

/// Frees the request, or keeps it as the spare one.
void retire(hips_request_t& request) {
  std::unique_ptr<hips_request> old(std::exchange(request, nullptr));
  if (!old || !old->reusable) return;
  Shared& shared = *old->shared;
  shared.keep_spare(std::move(old));
}

/// Waits for the call of a request that may be null, and frees the request unless it is persistent: however
/// the call ended, this is where hips.h's rule for handles is kept.
Status end_call(hips_request_t& request) {
  if (request == nullptr) return Status::success();
  Status status = request->call->wait();
  request->outstanding = false;
  if (!request->persistent) retire(request);
  return status;
}

/// The first failure counts; all have ended either way.
Status end_all(std::span<hips_request_t> requests) {
  Status first;
  for (hips_request_t& request : requests) {
    Status status = end_call(request);
    if (first.ok()) first = std::move(status);
  }
  return first;
}

/// Pauses between two looks at several requests: briefly at first, for small calls; then so that a peer can
/// have the core.
class Pause {
 public:
  void operator()() {
    if (clock_.now_ns() - begin_ns_ < kAwakeNs) {
      sched_yield();
    } else {
      const timespec nap{0, kNapNs};
      nanosleep(&nap, nullptr);
    }
  }
  [[nodiscard]] std::int64_t waited_ns() const { return clock_.now_ns() - begin_ns_; }

 private:
  static constexpr std::int64_t kAwakeNs = 1'000'000, kNapNs = 20'000;
  Clock& clock_ = SystemClock::instance();
  std::int64_t begin_ns_ = clock_.now_ns();
};

/// Waits for a call for a while; then ends it for all ranks.
Status abandon(hips_request_t& request) {
  Communicator& communicator = *request->shared->communicator;
  for (Pause pause; !request->call->test(); pause()) {
    if (pause.waited_ns() < communicator.abandon_after_ns()) continue;
    if (Status status = communicator.abort("it gave up an outstanding request"); !status.ok()) return status;
    break;
  }
  return end_call(request);
}

/// Waits until one of several requests is complete, and ends it.
Status end_any(std::span<hips_request_t> requests, std::size_t& index) {
  Pause pause;
  while (true) {
    std::size_t num_outstanding = 0, first = 0;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (requests[i] == nullptr || !requests[i]->outstanding) continue;
      if (num_outstanding++ == 0) first = i;
      if (!requests[i]->call->test()) continue;
      index = i;
      return end_call(requests[i]);
    }
    if (num_outstanding == 0) {
      index = HIPS_INDEX_NONE;
      return Status::success();
    }
    // One alone is waited for as such; so is the first when the user's deadline has passed, which ends it.
    if (num_outstanding == 1 || pause.waited_ns() >= requests[first]->shared->communicator->timeout_ns()) {
      index = first;
      return end_call(requests[first]);
    }
    pause();
  }
}

}  // namespace

Shared::Shared(std::unique_ptr<Communicator> made) : communicator(std::move(made)) {}

Shared::~Shared() {
  coalescer.reset();
  SpareCommunicators::process().retire(std::move(communicator));
}

std::unique_ptr<hips_request> Shared::take_spare() {
  // The handle exists, so they have not ended.
  return std::unique_ptr<hips_request>(spare_.exchange(nullptr, std::memory_order_acq_rel));
}

void Shared::keep_spare(std::unique_ptr<hips_request> request) {
  hips_request* none = nullptr;
  if (spare_.compare_exchange_strong(none, request.get(), std::memory_order_acq_rel))
    (void)request.release();  // NOLINT: spare_ has it
}

void Shared::keep(std::unique_ptr<Kept> object) noexcept {
  static std::unique_ptr<Kept>& for_ever = *new std::unique_ptr<Kept>;  // not destroyed at exit
  static std::mutex& adding = *new std::mutex;
  {
    const std::lock_guard lock(keeping_);
    if (!handle_ended_) {
      object->next = std::move(kept_);
      kept_ = std::move(object);
      return;
    }
  }
  object->stay();
  const std::lock_guard lock(adding);
  object->next = std::move(for_ever);
  for_ever = std::move(object);
}

void Shared::end_handle() {
  static hips_request ended;
  const std::unique_ptr<hips_request> last(spare_.exchange(&ended, std::memory_order_acq_rel));
  std::unique_ptr<Kept> kept;
  {
    const std::lock_guard lock(keeping_);
    handle_ended_ = true;
    kept = std::move(kept_);
  }
  // In a forked child its threads and connections are the parent's.
  if (in_forked_child()) (void)kept.release();  // NOLINT
}

Status start(const char* call, const CallArgs& args, hips_comm_t comm, hips_request_t* request) {
  if (request == nullptr) return null_argument(call, "request");
  std::unique_ptr<hips_request> made = comm->shared->take_spare();
  if (made) {
    if (Status status = made->call->renew(args); !status.ok()) return status;
    made->reusable = !is_user(args.op);
    made->persistent = false;
  } else {
    auto fresh = fresh_request(args, *comm->shared);
    if (!fresh) return fresh.error();
    made = std::move(*fresh);
  }
  return start_and_hand_out(std::move(made), request);
}

Status start_coalesced(std::span<const CoalescedBuffer> list, ReduceOp op, hips_comm_t comm,
                       hips_request_t* request) {
  Shared& shared = *comm->shared;
  auto prepared = prepare_coalesced(*shared.communicator, list, op);
  if (!prepared) return prepared.error();
  auto made = std::make_unique<hips_request>();
  made->call = std::move(*prepared);
  made->shared = SharedHold(shared);
  made->reusable = false;
  return start_and_hand_out(std::move(made), request);
}

Status prepare(const char* call, const Result<CallArgs>& args, hips_comm_t comm, hips_request_t* request) {
  if (!args) return args.error();
  if (request == nullptr) return null_argument(call, "request");
  auto made = fresh_request(*args, *comm->shared);
  if (!made) return made.error();
  (*made)->persistent = true;
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
    if (request->outstanding && !hips::comm::in_forked_child())
      return Status::error(
          Code::kInvalidArgument,
          "hips_start: the last call of this request is outstanding; wait for it before the next start");
    return start_call(*request);
  });
}

hips_status_t hips_test(hips_request_t* request, int* done) {
  return guarded([&]() -> Status {
    if (request == nullptr || done == nullptr)
      return null_argument("hips_test", request == nullptr ? "request" : "done");
    if (*request != nullptr) {
      if (hips::comm::in_forked_child()) return hips::comm::check_not_forked();
      if (!(*request)->call->test()) {
        *done = 0;
        return Status::success();
      }
    }
    *done = 1;
    return end_call(*request);
  });
}

hips_status_t hips_wait(hips_request_t* request) {
  return guarded([&]() -> Status {
    if (request == nullptr) return null_argument("hips_wait", "request");
    if (*request == nullptr) return Status::success();
    if (hips::comm::in_forked_child()) return hips::comm::check_not_forked();
    return end_call(*request);
  });
}

hips_status_t hips_testall(size_t count, hips_request_t* requests, int* done) {
  return guarded([&]() -> Status {
    if ((count > 0 && requests == nullptr) || done == nullptr)
      return null_argument("hips_testall", done == nullptr ? "done" : "requests");
    if (hips::comm::in_forked_child()) return hips::comm::check_not_forked();
    bool all = true;
    for (hips_request_t request : std::span(requests, count))
      if (request != nullptr && request->outstanding) all &= request->call->test();
    *done = all ? 1 : 0;
    return all ? end_all({requests, count}) : Status::success();
  });
}

hips_status_t hips_waitall(size_t count, hips_request_t* requests) {
  return guarded([&]() -> Status {
    if (count > 0 && requests == nullptr) return null_argument("hips_waitall", "requests");
    if (hips::comm::in_forked_child()) return hips::comm::check_not_forked();
    return end_all({requests, count});
  });
}

hips_status_t hips_waitany(size_t count, hips_request_t* requests, size_t* index) {
  return guarded([&]() -> Status {
    if ((count > 0 && requests == nullptr) || index == nullptr)
      return null_argument("hips_waitany", index == nullptr ? "index" : "requests");
    if (hips::comm::in_forked_child()) return hips::comm::check_not_forked();
    return end_any({requests, count}, *index);
  });
}

hips_status_t hips_request_abandon(hips_request_t* request) {
  return guarded([&]() -> Status {
    if (request == nullptr) return null_argument("hips_request_abandon", "request");
    if (*request == nullptr) return Status::success();
    if (hips::comm::in_forked_child()) return hips::comm::check_not_forked();
    return abandon(*request);
  });
}

hips_status_t hips_request_free(hips_request_t* request) {
  return guarded([&]() -> Status {
    if (request == nullptr) return null_argument("hips_request_free", "request");
    // In a child of fork() the call is the parent's, and the handle's memory the child's.
    if (*request != nullptr && (*request)->outstanding && !hips::comm::in_forked_child())
      return Status::error(Code::kInvalidArgument,
                           "hips_request_free: the request is outstanding; wait for it first");
    retire(*request);
    return Status::success();
  });
}

}  // extern "C"
