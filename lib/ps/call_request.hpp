#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include <hips/hips.h>

#include "lib/comm/calls/request.hpp"
#include "lib/comm/capi/capi.hpp"
#include "lib/comm/fork_guard.hpp"

namespace hips::ps {

/// A call of a table or a model that the program waits for by a request of the C API. `Call` has a flag `done`, `Object` test() and
/// wait().
///
/// Owns     the object, until the request has ended.
template <typename Object, typename Call>
class ObjectRequest final : public comm::Request {
 public:
  std::shared_ptr<Object> object;
  std::unique_ptr<Call> call;

  ~ObjectRequest() override {
    if (!comm::in_forked_child()) {
      (void)end();
      return;
    }
    // The call is the parent's.
    (void)call.release();
    new std::shared_ptr<Object>(std::move(object));  // NOLINT
  }

  Status renew(const comm::CallArgs& /*args*/) override {
    return Status::error(Code::kUnsupported, "this call is made anew each time");
  }
  Status start() override { return Status::success(); }
  [[nodiscard]] bool active() const override { return call != nullptr; }
  [[nodiscard]] bool has_ended() override { return !call || call->done.load(std::memory_order_acquire); }
  bool test() override { return !call || object->test(*call); }
  Status wait() override { return end(); }

 private:
  Status end() { return call ? object->wait(std::move(call)) : Status::success(); }
};

/// Calls begin(call), which starts a call or leaves it empty where it has ended already, and makes a request of it: null then.
template <typename Call, typename Object, typename Begin>
Status start_request(const std::shared_ptr<Object>& object, comm::capi::Shared& comm, hips_request_t* request,
                     Begin&& begin) {
  // Nothing can fail once the call has begun.
  auto made = std::make_unique<hips_request>();
  auto owner = std::make_unique<ObjectRequest<Object, Call>>();
  if (Status status = begin(owner->call); !status.ok()) return status;
  *request = HIPS_REQUEST_NULL;
  if (!owner->call) return Status::success();
  owner->object = object;
  made->shared = comm::capi::SharedHold(comm);
  made->call = std::move(owner);
  made->reusable = false;
  made->outstanding = true;
  *request = made.release();
  return Status::success();
}

}  // namespace hips::ps
