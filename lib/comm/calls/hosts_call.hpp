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
#include "lib/comm/setup/hosts.hpp"
#include "lib/exec/companion.hpp"
#include "lib/exec/team.hpp"
#include "lib/node/node_team.hpp"

namespace hips::comm {

class HostsCalls;

/// What the calls of a communicator of several hosts share.
struct HostsParts {
  const Hosts& hosts;
  node::NodeTeam& node;
  TeamParts team;  ///< programs of all ranks first, as `team.plans` counts them
  const std::vector<Design::Choice>& between;
  std::int32_t first_between = 0;  ///< index of the team's first program between hosts
  HostsCalls& calls;
};

/// A call on a communicator of several hosts. An allreduce goes through the memory of each host and between
/// hosts, chunk by chunk; anything else, and sizes for which somebody chose a plan of all ranks, goes by such
/// a plan (TeamCall).
///
///     rank 0 of host A   | scatter 0 | scatter 1 | gather 0 | scatter 2 | gather 1 | gather 2 |   memory
///                                    |    ranks 0, chunk 0  |   ranks 0, chunk 1   | ...          NICs
///
/// *Scatter*: the host's ranks fold the chunk, each a share of its own (NodeTeam's reduce_scatter), into the
/// output where it belongs. *Between*: the ranks of one number on all hosts allreduce their share, in place,
/// by the plan for the hosts' wiring. *Gather*: the host's ranks copy each other's shares (NodeTeam's
/// allgather). A short vector is folded by every rank of the host and goes between hosts as a whole for each
/// number: there is nothing to gather then, and one step less for each other.
///
/// Which step in memory follows which is the same on all ranks of a host, however fast each is between hosts:
/// kAhead chunks are scattered before the first is gathered, and then they take turns.
///
/// Result   each element is folded in the order of ranks within a host and then by the plan; equal on all
///          ranks.
/// Cost     two steps in memory and the plan's messages for 1/m of each chunk; of a short vector one step and
///          the plan's messages for all of it. In traces each step and each plan is an operation.
/// Source   Bayatpour et al., Scalable Reduction Collectives with Data Partitioning-based Multi-Leader
///          Design, SC 2017.
/// Threads  start(), wait() and test() as of any call; advance() and what it uses: the progress owner.
class HostsCall final : public PendingCall, public exec::Awaited {
 public:
  explicit HostsCall(const HostsParts& parts) : parts_(parts) {}

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
  friend class HostsCalls;
  enum class Way : std::uint8_t {
    kPlan,   ///< of all ranks
    kShort,  ///< the whole vector everywhere
    kLong,   ///< shares of chunks
  };
  enum class State : std::uint8_t {
    kWaiting,  ///< for its turn
    kBegun,
    kDone,
  };
  static constexpr std::uint64_t kAhead = 2;

  // For HostsCalls.
  /// Its turn has come; `number` counts calls from one. False: it moves without advance().
  bool begin(std::uint64_t number);
  /// Moves it as far as it gets; true when anything moved.
  bool advance();
  [[nodiscard]] bool has_ended() const { return ended_; }
  /// The last that is done with it: whoever waits may destroy it at once.
  void close() { state_.store(State::kDone, std::memory_order_release); }
  [[nodiscard]] bool in_memory() const { return in_memory_; }

  [[nodiscard]] Way way_of(const CallArgs& args) const;
  [[nodiscard]] std::uint64_t elements_of(std::uint64_t chunk) const;
  [[nodiscard]] const std::shared_ptr<const Sections>& shares_of(std::uint64_t chunk) const {
    return chunk + 1 == num_chunks_ ? last_shares_ : shares_;
  }
  /// Where this rank's share of a chunk begins in the vector, in bytes.
  [[nodiscard]] std::size_t share_at(std::uint64_t chunk) const;
  void start_scatter();
  void start_between();
  void start_gather();
  /// Has everything that was started between hosts ended?
  [[nodiscard]] bool all_back() const;
  /// What its step in memory and its operations lack.
  [[nodiscard]] std::vector<Rank> lacking() const;
  [[nodiscard]] std::string lacking_text() const;
  /// It is done: how it ended, and the caller has its result.
  Status finish();

  HostsParts parts_;
  CallArgs args_;
  Way way_ = Way::kPlan;
  std::optional<TeamCall> planned_;
  exec::OperationArgs between_args_;
  node::Call node_call_;
  // Of a long vector.
  std::uint64_t num_chunks_ = 1, chunk_elements_ = 0;
  std::shared_ptr<const Sections> shares_, last_shares_;

  std::atomic<State> state_{State::kDone};
  Status status_;
  bool ended_ = true;
  bool in_memory_ = false;  ///< a step of this call is under way there
  bool gathering_ = false;  ///< which
  std::uint64_t scattered_ = 0, gathered_ = 0;
  HostsCall* next_ = nullptr;  ///< in the list of those that wait
  /// Between hosts, by chunk; null before the first.
  std::array<std::shared_ptr<exec::Operation>, kAhead> between_;
};

}  // namespace hips::comm
