#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "lib/comm/calls/node_calls.hpp"
#include "lib/comm/process.hpp"
#include "lib/comm/watched_communicator.hpp"
#include "lib/node/node_team.hpp"

namespace hips::comm {

/// Carries calls out in memory that all ranks share: one host, and nobody asked for a plan.
class NodeCommunicator final : public WatchedCommunicator {
 public:
  /// More ranks than this go by a plan: every rank reads from every other.
  static constexpr Rank kMostRanks = 64;
  /// Do these processes get one? The same answer on all ranks.
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
  Verdicts verdicts() override;
  Result<Blob> allocate(const std::vector<Blob>& offers) override;
  Status connect(const std::vector<Blob>& addresses) override;

  Config config_;
  Clock* clock_;  ///< of the options; null: the system's
  std::shared_ptr<ProcessEngine> engine_;
  std::unique_ptr<node::NodeTeam> team_;
  std::optional<NodeCalls> calls_;
};

}  // namespace hips::comm
