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

  [[nodiscard]] bool derives() const override { return true; }
  Status fail_derived(std::span<const Rank> members, std::uint64_t nth, std::uint64_t part) override;

 private:
  /// Of the processes that have met in set_up().
  NodeCommunicator(const NodeCommunicator& parent, std::span<const Rank> members, Rank rank,
                   const CommunicatorOptions& options);
  Result<std::unique_ptr<Communicator>> make_derived(std::span<const Rank> members, std::uint64_t nth,
                                                     std::uint64_t part, const CommunicatorOptions& options,
                                                     IfFailed if_failed) override;
  Status make_team(std::uint64_t id, std::shared_ptr<node::NodeSegment> segment);

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

  std::shared_ptr<const Config> config_;
  Clock* clock_;  ///< from the options; null: the system clock
  std::shared_ptr<const std::vector<ProcessInfo>>
      met_;                   ///< the processes of the communicator that this derives from
  std::vector<Rank> places_;  ///< by rank, the place in met_
  std::shared_ptr<ProcessEngine> engine_;
  std::unique_ptr<node::NodeTeam> team_;
  std::optional<NodeCalls> calls_;
};

}  // namespace hips::comm
