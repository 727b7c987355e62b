#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "lib/comm/backend.hpp"
#include "lib/comm/calls/node_calls.hpp"
#include "lib/comm/process.hpp"
#include "lib/node/node_team.hpp"

namespace hips::comm {

/// Executes calls in the shared memory of one node, without a plan that the user named.
class SharedMemoryBackend final : public Backend {
 public:
  /// More ranks use a plan, because here every rank reads from every other.
  static constexpr Rank kMostRanks = 64;
  /// True if a communicator of these processes gets this backend. The same on all ranks.
  static bool serves(const Design& design, const Config& config, const std::vector<ProcessInfo>& processes);

  explicit SharedMemoryBackend(Context context) : Backend(std::move(context)) {}

  Result<Outbound> make(const Design& design, const std::vector<ProcessInfo>& processes,
                        std::uint64_t id) override;
  FailureActions failure_actions() override;
  Result<Outbound> allocate(const Inbound& offers) override;
  Status connect(const Inbound& addresses) override;
  [[nodiscard]] bool derives() const override { return true; }
  Result<std::unique_ptr<Backend>> derive(std::span<const Rank> members, std::uint64_t id,
                                          Context context) override;
  [[nodiscard]] Status refuse(const CallArgs& args) const override;
  Status run(const CallArgs& args, Communicator& caller) override;
  std::unique_ptr<PendingCall> make_call() override;
  void advance() override;
  [[nodiscard]] Clock& clock() const override;

 private:
  Status make_team(std::uint64_t id, std::shared_ptr<node::NodeSegment> segment);

  /// The processes that met in the set-up of the communicator from which this one derives.
  std::shared_ptr<const std::vector<ProcessInfo>> met_;
  std::vector<Rank> places_;  ///< by rank, the place in met_
  std::shared_ptr<ProcessEngine> engine_;
  std::unique_ptr<node::NodeTeam> team_;
  std::optional<NodeCalls> calls_;
};

}  // namespace hips::comm
