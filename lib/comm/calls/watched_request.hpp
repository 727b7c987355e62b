#pragma once

#include <cstdint>
#include <memory>

#include "lib/comm/calls/pending_call.hpp"
#include "lib/comm/calls/request.hpp"
#include "lib/comm/watched_communicator.hpp"
#include "lib/reduce/user_op.hpp"

namespace hips::comm {

/// A non-blocking or persistent call of a communicator that is watched. The communicator outlives it.
class WatchedRequest final : public Request {
 public:
  /// Give it arguments before it is handed out.
  WatchedRequest(WatchedCommunicator& communicator, std::unique_ptr<PendingCall> call)
      : communicator_(communicator), call_(std::move(call)) {}
  ~WatchedRequest() override;

  /// Arguments of which check_arguments() thinks well.
  Status set(const CallArgs& args);
  Status renew(const CallArgs& args) override;
  Status start() override;
  [[nodiscard]] bool active() const override { return active_; }
  bool has_ended() override;
  bool test() override;
  Status wait() override;

 private:
  WatchedCommunicator& communicator_;
  CallArgs args_;
  reduce::UserOpHold op_hold_;
  std::unique_ptr<PendingCall> call_;
  bool active_ = false;
  std::uint64_t index_ = 0;  ///< in the record of calls; 0: none, as the communicator had failed before
  WatchedCommunicator::Polls polls_;  ///< since the last start
  Status status_;                     ///< of the last start that has ended
};

}  // namespace hips::comm
