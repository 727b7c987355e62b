#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "lib/comm/backend.hpp"
#include "lib/comm/calls/team_call.hpp"
#include "lib/comm/calls/team_plans.hpp"
#include "lib/comm/calls/work_buffers.hpp"
#include "lib/comm/process.hpp"
#include "lib/exec/team.hpp"

namespace hips::comm {

/// Executes calls by a plan over transports.
class PlanBackend final : public Backend {
 public:
  explicit PlanBackend(Context context) : Backend(std::move(context)) {}

  Result<Outbound> make(const Design& design, const std::vector<ProcessInfo>& processes,
                        std::uint64_t id) override;
  FailureActions failure_actions() override;
  Result<Outbound> allocate(const Inbound& offers) override;
  Status connect(const Inbound& addresses) override;
  Status run(const CallArgs& args, Communicator& caller) override;
  std::unique_ptr<PendingCall> make_call() override;
  void advance() override;
  [[nodiscard]] Clock& clock() const override;

 private:
  [[nodiscard]] TeamParts parts();

  std::shared_ptr<ProcessEngine> engine_;
  std::unique_ptr<exec::Team> team_;
  std::optional<TeamPlans> plans_;  ///< set by make()
  WorkBuffers buffers_;
};

}  // namespace hips::comm
