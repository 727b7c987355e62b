#pragma once

#include "lib/comm/backend.hpp"

namespace hips::comm {

/// Executes the calls of a single rank: copies, and reductions of one operand. A call is complete once it has started.
class SingleRankBackend final : public Backend {
 public:
  explicit SingleRankBackend(Context context) : Backend(std::move(context)) {
    description_ = "one rank: a copy";
    name_ = "memory";
  }

  // It has no peers, so it needs no set-up.
  Result<Outbound> make(const Design& /*design*/, const std::vector<ProcessInfo>& /*processes*/,
                        std::uint64_t /*id*/) override {
    return Outbound();
  }
  FailureActions failure_actions() override { return {}; }
  Result<Outbound> allocate(const Inbound& /*offers*/) override { return Outbound(); }
  Status connect(const Inbound& /*addresses*/) override { return Status::success(); }

  Status run(const CallArgs& args, Communicator& caller) override;
  std::unique_ptr<PendingCall> make_call() override;
  void advance() override {}
  [[nodiscard]] Clock& clock() const override {
    return context_.clock != nullptr ? *context_.clock : SystemClock::instance();
  }
};

}  // namespace hips::comm
