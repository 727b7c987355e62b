#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "lib/comm/calls/team_call.hpp"
#include "lib/comm/calls/team_plans.hpp"
#include "lib/comm/calls/work_buffers.hpp"
#include "lib/comm/process.hpp"
#include "lib/comm/watched_communicator.hpp"
#include "lib/exec/team.hpp"

namespace hips::comm {

/// A communicator that executes calls by a plan over transports.
class TeamCommunicator final : public WatchedCommunicator {
 public:
  TeamCommunicator(Bootstrap& bootstrap, const Config& config, const CommunicatorOptions& options)
      : WatchedCommunicator(bootstrap, config, options), config_(config), clock_(options.clock) {}
  ~TeamCommunicator() override;

 private:
  [[nodiscard]] TeamParts parts();
  Status run(const CallArgs& args) override;
  std::unique_ptr<PendingCall> make_call() override;
  void advance() override;
  [[nodiscard]] Clock& clock() const override;
  Result<Blob> make(const Design& design, const std::vector<ProcessInfo>& processes,
                    std::uint64_t id) override;
  FailureActions failure_actions() override;
  Result<Blob> allocate(const std::vector<Blob>& offers) override;
  Status connect(const std::vector<Blob>& addresses) override;

  Config config_;
  Clock* clock_;
  std::shared_ptr<ProcessEngine> engine_;
  std::unique_ptr<exec::Team> team_;
  std::optional<TeamPlans> plans_;  ///< set by make()
  WorkBuffers buffers_;
};

}  // namespace hips::comm
