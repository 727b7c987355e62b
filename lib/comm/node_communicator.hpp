#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "lib/comm/calls/node_calls.hpp"
#include "lib/comm/process.hpp"
#include "lib/comm/watched_communicator.hpp"
#include "lib/node/node_team.hpp"

namespace hips::comm {

/// A communicator on one node without a user-chosen plan. It executes calls in shared memory.
class NodeCommunicator final : public WatchedCommunicator {
 public:
  /// More ranks use a plan, because here every rank reads from every other.
  static constexpr Rank kMostRanks = 64;
  /// True if these processes get a NodeCommunicator. The same on all ranks.
  static bool serves(const Design& design, const Config& config, const std::vector<ProcessInfo>& processes);

  NodeCommunicator(Bootstrap& bootstrap, const Config& config, const CommunicatorOptions& options);
  ~NodeCommunicator() override;

 private:
  [[nodiscard]] Status refuse(const CallArgs& args) const override;
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
  Clock* clock_;  ///< from the options; null: the system clock
  std::shared_ptr<ProcessEngine> engine_;
  std::unique_ptr<node::NodeTeam> team_;
  std::optional<NodeCalls> calls_;
};

}  // namespace hips::comm
