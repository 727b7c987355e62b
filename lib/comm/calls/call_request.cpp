#include "lib/comm/calls/call_request.hpp"

#include <utility>

#include "lib/comm/fork_guard.hpp"

namespace hips::comm {

CallRequest::~CallRequest() {
  if (in_forked_child()) {
    (void)call_.release();  // belongs to the parent
    return;
  }
  (void)wait();
}

Status CallRequest::renew(const CallArgs& args) {
  // The check and what was prepared hold for the same call again; but a user's function may have been freed meanwhile.
  if (is_set_ && args == args_ && !is_user(args.op)) return Status::success();
  if (Status status = communicator_.check(args); !status.ok()) return status;
  return set(args);
}

Status CallRequest::set(const CallArgs& args) {
  is_set_ = false;
  const CallArgs last = std::exchange(args_, {});  // its sections live until the call has the new ones
  if (Status status = call_->set(args); !status.ok()) return status;
  args_ = args;  // keeps the sections alive that the call refers to
  is_set_ = true;
  if (is_user(args.op) || is_user(op_hold_.op())) op_hold_ = reduce::UserOpHold(args.op);
  return Status::success();
}

Status CallRequest::start() {
  if (in_forked_child()) return check_not_forked();
  if (active_)
    return Status::error(
        Code::kInvalidArgument,
        "start: the last call of this request is outstanding; wait for it before the next start");
  buffers_.hold(args_, communicator_.rank());
  if (Status status = communicator_.start(*call_, args_, index_); !status.ok()) {
    buffers_.drop();
    return status;
  }
  active_ = true;
  polls_.num = 0;
  if (!status_.ok()) status_ = {};
  return Status::success();
}

bool CallRequest::has_ended() {
  return !active_ || (!in_forked_child() && communicator_.has_ended(*call_));
}

bool CallRequest::test() {
  if (!active_) return true;
  if (in_forked_child()) return false;
  std::optional<Status> end = communicator_.test(*call_, index_, polls_);
  if (!end) return false;
  if (!end->ok()) status_ = *std::move(end);
  buffers_.drop();
  active_ = false;
  return true;
}

Status CallRequest::wait() {
  if (in_forked_child()) return check_not_forked();
  if (active_) {
    Status status = communicator_.finish(*call_, index_);
    buffers_.drop();
    active_ = false;
    return status;
  }
  if (status_.ok()) return Status::success();
  return std::exchange(status_, Status::success());
}

}  // namespace hips::comm
