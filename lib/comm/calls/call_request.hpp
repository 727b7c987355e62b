#pragma once

#include <cstdint>
#include <memory>

#include "lib/comm/calls/held_buffers.hpp"
#include "lib/comm/calls/pending_call.hpp"
#include "lib/comm/calls/request.hpp"
#include "lib/comm/communicator.hpp"
#include "lib/reduce/user_op.hpp"

namespace hips::comm {

/// A non-blocking or persistent call of a Communicator, which outlives it.
class CallRequest final : public Request {
 public:
  /// The creator calls set() before it hands the request out.
  CallRequest(Communicator& communicator, std::unique_ptr<PendingCall> call)
      : communicator_(communicator), call_(std::move(call)) {}
  ~CallRequest() override;

  /// Sets arguments that check_arguments() has found valid.
  Status set(const CallArgs& args);
  Status renew(const CallArgs& args) override;
  Status start() override;
  [[nodiscard]] bool active() const override { return active_; }
  bool has_ended() override;
  bool test() override;
  Status wait() override;

 private:
  Communicator& communicator_;
  CallArgs args_;
  bool is_set_ = false;  ///< the call has these arguments: the last set() did not fail
  reduce::UserOpHold op_hold_;
  std::unique_ptr<PendingCall> call_;
  HeldBuffers buffers_;  ///< while it is active
  bool active_ = false;
  std::uint64_t index_ = 0;    ///< in the call record; 0 before the first start
  Communicator::Polls polls_;  ///< since the last start
  Status status_;              ///< of the last call that test() found complete
};

}  // namespace hips::comm
