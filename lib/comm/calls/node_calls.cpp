#include "lib/comm/calls/node_calls.hpp"

#include <utility>

#include "lib/base/exception_status.hpp"

namespace hips::comm {

void NodeCalls::add(NodeCall& call) {
  call.done_ = false;
  call.next_ = nullptr;
  if (first_ != nullptr) {
    last_->next_ = &call;
    last_ = &call;
    return;
  }
  first_ = last_ = &call;
  try {
    team_.start(call.call_);
  } catch (...) {
    abandon(call);
    throw;
  }
}

void NodeCalls::finish_first() {
  NodeCall& call = *std::exchange(first_, first_->next_);
  call.done_ = true;
  if (first_ != nullptr) team_.start(first_->call_);
}

void NodeCalls::advance() {
  while (first_ != nullptr) {
    std::optional<Status> end;
    try {
      end = team_.test();
    } catch (...) {
      // Others wait for this call, and this rank may wait for another one.
      try {
        team_.report(status_of_exception());
      } catch (...) {
      }
      abandon(*first_);
      continue;
    }
    if (!end) return;
    if (!end->ok()) first_->status_ = *end;  // stays: the team has failed
    finish_first();
  }
}

void NodeCalls::abandon(const NodeCall& last) noexcept {
  do {
    team_.abandon();
    first_->status_ = node::NodeTeam::abandoned();
    finish_first();
  } while (!last.done_);
}

bool NodeCalls::poll_briefly(const NodeCall& call) {
  if (first_ != &call) return false;
  try {
    if (!team_.poll_briefly()) return false;
  } catch (...) {
    abandon(call);
    throw;
  }
  finish_first();
  return true;
}

Status NodeCalls::wait(NodeCall& call, const WaitOptions& options) {
  try {
    while (!call.done_) {
      const Status status = team_.wait(options);
      if (!team_.done()) return status;  // the deadline
      if (!status.ok()) first_->status_ = status;
      finish_first();
    }
  } catch (...) {
    if (!call.done_) abandon(call);
    throw;
  }
  if (call.status_.ok()) return Status::success();
  return call.status_;
}

std::optional<Status> NodeCall::test() {
  if (!done_) calls_.advance();
  if (!done_) return std::nullopt;
  return status_;
}

}  // namespace hips::comm
