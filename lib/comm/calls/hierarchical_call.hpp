#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/sections.hpp"
#include "lib/comm/calls/call_args.hpp"
#include "lib/comm/calls/pending_call.hpp"
#include "lib/comm/calls/team_call.hpp"
#include "lib/comm/setup/node_groups.hpp"
#include "lib/exec/engine_client.hpp"
#include "lib/exec/team.hpp"
#include "lib/node/node_team.hpp"

namespace hips::comm {

class HierarchicalCalls;

/// The parts of a HierarchicalBackend that its calls share.
struct HierarchicalParts {
  const NodeGroups& nodes;
  node::NodeTeam& node;
  TeamParts team;  ///< `team.plans` has the programs of all ranks, the first ones of the team
  const PlansBetween& between;
  std::int32_t first_between = 0;  ///< index of the team's first inter-node program
  HierarchicalCalls& calls;
};

/// A call on a communicator of several nodes with several ranks each. An allreduce, and a barrier as one of a byte, is
/// hierarchical: it alternates between shared memory within the nodes and a plan between the nodes, chunk by chunk. Other
/// collectives, and sizes for which the user chose a plan of all ranks, use a plan of all ranks (TeamCall).
///
///     rank 0 of node A   | scatter 0 | scatter 1 | gather 0 | scatter 2 | gather 1 | gather 2 |   memory
///                                    |    ranks 0, chunk 0  |   ranks 0, chunk 1   | ...          NICs
///
/// *Scatter*: the m ranks of a node reduce the chunk, each rank its own share (NodeTeam's reduce_scatter), into
/// the share's position in the output. *Between*: the ranks with the same local rank on all nodes allreduce
/// their share in place, by the inter-node plan. *Gather*: the ranks of a node copy each other's shares
/// (NodeTeam's allgather). The ranks with a share are the leaders: on each node as many as the
/// smallest node has ranks, or the first one where messages cost more than bytes (PlansBetween).
///
/// Over RDMA short vectors need one step less in memory: every rank of a node reduces the whole vector, and each local
/// rank allreduces all of it between the nodes. There is nothing to gather then. What is short depends on the NICs
/// (PlansBetween): they carry the vector m times.
///
/// The order of the steps in memory is the same on all ranks of a node and does not depend on the progress
/// between nodes: the first kAhead chunks are scattered before the first one is gathered; after that, one
/// gather and one scatter alternate.
///
/// Result   each element is reduced in rank order within a node and then by the plan; equal on all ranks.
/// Cost     two steps in memory, and the plan's messages for 1/m of each chunk, or one leader's for all of it. For a short
///          vector over RDMA: one step, and the plan's messages for the whole vector. In traces each step and each plan is an operation.
/// Source   Bayatpour et al., Scalable Reduction Collectives with Data Partitioning-based Multi-Leader
///          Design, SC 2017.
/// Threads  start(), wait() and test() as for any call; advance() and what it uses: the progress owner.
class HierarchicalCall final : public PendingCall, public exec::Waitable {
 public:
  explicit HierarchicalCall(const HierarchicalParts& parts) : parts_(parts) {}

  Status set(const CallArgs& args) override;
  void start() override;
  std::optional<Status> test() override;
  [[nodiscard]] bool done() const override;
  Status wait(const WaitOptions& options) override;
  void while_still(const std::function<void()>& visit) override {
    (void)parts_.team.engine.while_still(visit);
  }
  [[nodiscard]] std::vector<Rank> waiting_for() const override;
  [[nodiscard]] std::string waiting_text() const override;
  [[nodiscard]] const Status& status() const override { return status_; }

 private:
  friend class HierarchicalCalls;
  enum class Path : std::uint8_t {
    kPlan,    ///< a plan of all ranks
    kWhole,   ///< hierarchical; every rank reduces the whole vector
    kShares,  ///< hierarchical; every leader of a node reduces its share of each chunk
  };
  enum class State : std::uint8_t {
    kWaiting,  ///< for the calls before it
    kBegun,
    kDone,
  };
  static constexpr std::uint64_t kAhead = 2;

  // For HierarchicalCalls.
  /// Begins the call; the calls before it allow that. `number` counts calls from 1. False: the call makes
  /// progress without advance().
  bool begin(std::uint64_t number);
  /// Makes as much progress as possible; true if there was any.
  bool advance();
  /// advance(), which turns exceptions into the failure of this call.
  bool make_progress();
  [[nodiscard]] bool has_ended() const { return ended_; }
  /// Marks the call as complete. The last access: the thread that waits for it may destroy it at once.
  void close() { state_.store(State::kDone, std::memory_order_release); }
  [[nodiscard]] bool in_memory() const { return in_memory_; }

  [[nodiscard]] Path path_of(const CallArgs& args) const;
  [[nodiscard]] std::uint64_t elements_of(std::uint64_t chunk) const;
  [[nodiscard]] const std::shared_ptr<const Sections>& shares_of(std::uint64_t chunk) const {
    return chunk + 1 == num_chunks_ ? last_shares_ : shares_;
  }
  /// The offset of this rank's share of a chunk in the vector, in bytes.
  [[nodiscard]] std::size_t share_at(std::uint64_t chunk) const;
  void start_scatter();
  void start_between();
  void start_gather();
  /// True if all inter-node operations that were started are complete.
  [[nodiscard]] bool all_between_done() const;
  /// The ranks for which the step in memory and the inter-node operations wait.
  [[nodiscard]] std::vector<Rank> missing() const;
  [[nodiscard]] std::string missing_text() const;
  /// Gives the caller the result of a call that is done, and returns its status.
  Status finish();

  HierarchicalParts parts_;
  CallArgs user_;  ///< as the user called it
  CallArgs args_;  ///< the allreduce of it: of a barrier that of a byte
  std::byte token_{};
  Path path_ = Path::kPlan;
  std::optional<TeamCall> planned_;
  exec::OperationArgs between_args_;
  node::Call node_call_;
  // Used by kShares.
  std::uint64_t num_chunks_ = 1, chunk_elements_ = 0;
  std::shared_ptr<const Sections> shares_, last_shares_;

  std::atomic<State> state_{State::kDone};
  Status status_;
  bool ended_ = true;
  bool in_memory_ = false;  ///< a step in memory is outstanding
  bool gathering_ = false;  ///< that step is a gather, else a scatter
  std::uint64_t scattered_ = 0, gathered_ = 0;
  HierarchicalCall* next_ = nullptr;  ///< in the list of waiting calls
  /// The inter-node operation of each chunk, modulo kAhead; null before the first.
  std::array<std::shared_ptr<exec::Operation>, kAhead> between_;
};

}  // namespace hips::comm
