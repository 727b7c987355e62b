#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "lib/comm/backend.hpp"
#include "lib/comm/calls/hierarchical_call.hpp"
#include "lib/comm/calls/hierarchical_calls.hpp"
#include "lib/comm/calls/team_plans.hpp"
#include "lib/comm/calls/work_buffers.hpp"
#include "lib/comm/process.hpp"
#include "lib/comm/setup/node_groups.hpp"
#include "lib/exec/team.hpp"
#include "lib/node/node_team.hpp"

namespace hips::comm {

/// Executes calls of several nodes, not all with one rank: in the shared memory of each node and by a plan between the nodes. One
/// team has the programs of all ranks and the inter-node programs, so that all calls have one order.
class HierarchicalBackend final : public Backend {
 public:
  HierarchicalBackend(Context context, NodeGroups nodes)
      : Backend(std::move(context)), nodes_(std::move(nodes)) {}

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
  [[nodiscard]] HierarchicalParts parts();

  NodeGroups nodes_;
  std::shared_ptr<ProcessEngine> engine_;
  std::unique_ptr<exec::Team> team_;
  std::unique_ptr<node::NodeTeam> node_;
  std::optional<TeamPlans> plans_;  ///< of all ranks; set by make()
  PlansBetween between_;
  std::int32_t first_between_ = 0;
  WorkBuffers buffers_;
  std::unique_ptr<HierarchicalCalls> calls_;
};

}  // namespace hips::comm
