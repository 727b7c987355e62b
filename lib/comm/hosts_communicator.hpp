#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "lib/comm/calls/hosts_call.hpp"
#include "lib/comm/calls/hosts_calls.hpp"
#include "lib/comm/calls/team_plans.hpp"
#include "lib/comm/calls/work_buffers.hpp"
#include "lib/comm/process.hpp"
#include "lib/comm/setup/hosts.hpp"
#include "lib/comm/watched_communicator.hpp"
#include "lib/exec/team.hpp"
#include "lib/node/node_team.hpp"

namespace hips::comm {

/// Carries calls out in the memory of each host and by a plan between hosts, where every host has as many
/// ranks. One team has the programs of both, those of all ranks and those between hosts, so that all calls
/// have one order.
class HostsCommunicator final : public WatchedCommunicator {
 public:
  HostsCommunicator(Bootstrap& bootstrap, const Config& config, const CommunicatorOptions& options,
                    Hosts hosts)
      : WatchedCommunicator(bootstrap, config, options),
        config_(config),
        clock_(options.clock),
        hosts_(std::move(hosts)) {}
  ~HostsCommunicator() override;

 private:
  [[nodiscard]] HostsParts parts();
  Status run(const CallArgs& args) override;
  std::unique_ptr<PendingCall> make_call() override;
  void advance() override;
  [[nodiscard]] Clock& clock() const override;
  Result<Blob> make(const Design& design, const std::vector<ProcessInfo>& processes,
                    std::uint64_t id) override;
  Verdicts verdicts() override;
  Result<Blob> allocate(const std::vector<Blob>& offers) override;
  Status connect(const std::vector<Blob>& addresses) override;

  Config config_;
  Clock* clock_;
  Hosts hosts_;
  std::shared_ptr<ProcessEngine> engine_;
  std::unique_ptr<exec::Team> team_;
  std::unique_ptr<node::NodeTeam> node_;
  std::optional<TeamPlans> plans_;  ///< of all ranks; from make() on
  std::vector<Design::Choice> between_;
  std::int32_t first_between_ = 0;
  WorkBuffers buffers_;
  std::unique_ptr<HostsCalls> calls_;
};

}  // namespace hips::comm
