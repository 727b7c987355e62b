#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/comm/calls/pending_call.hpp"
#include "lib/comm/calls/team_plans.hpp"
#include "lib/comm/calls/work_buffers.hpp"
#include "lib/exec/engine.hpp"
#include "lib/exec/team.hpp"

namespace hips::comm {

/// What a team's calls share.
struct TeamParts {
  exec::Engine& engine;
  exec::Team& team;
  TeamPlans& plans;
  WorkBuffers& buffers;
  Rank rank = -1;
  Rank size = 0;
  bool by_rank = false;  ///< plans fold operands in the order of ranks
};

/// A call on a team: hands the plan a vector as it wants it, and the caller what is the caller's of the
/// result.
///
/// | collective      | the plan's vector                                   | copies beside it               |
/// |-----------------|-----------------------------------------------------|--------------------------------|
/// | allreduce       | the caller's                                        |                                |
/// | bcast           | the caller's                                        |                                |
/// | reduce          | the caller's; of others than the root one of ours   |                                |
/// | reduce_scatter  | ours for the sums; the caller's input, in order     | the section; else all input    |
/// | allgather       | the caller's output, in order; else ours            | the own section; else all      |
/// | barrier         | one byte of ours                                    |                                |
/// | ordered user op | an allgather's (ordered_fold.hpp)                   | the allgather's; the fold      |
///
/// "In order": the plan's blocks stand in the order of ranks (Arrangement). Where no plan has sections, a
/// reduce_scatter is an allreduce of which a part is kept, and an allgather an allreduce of vectors that are
/// zero beside the own section, by bitwise or: twice the bytes, on any plan. The same of a bcast that no plan
/// gives.
class TeamCall final : public PendingCall {
 public:
  explicit TeamCall(const TeamParts& parts) : parts_(parts) {}

  Status set(const CallArgs& args) override;
  void start() override;
  /// The same inside exec::Companion::advance().
  void start_in_progress();
  std::optional<Status> test() override;
  [[nodiscard]] bool done() const override { return !operation_ || operation_->done(); }
  Status wait(const WaitOptions& options) override;
  void while_still(const std::function<void()>& visit) override { (void)parts_.engine.while_still(visit); }
  [[nodiscard]] std::vector<Rank> waiting_for() const override { return operation_->waiting_for(); }
  [[nodiscard]] std::string waiting_text() const override { return operation_->waiting_text(); }

 private:
  /// A reduction by a function that does not commute, where the plan does not fold by rank.
  [[nodiscard]] bool is_gathered(const CallArgs& args) const {
    return is_ordered(args.op) && folds(args.collective) && !parts_.by_rank;
  }
  Status set_gathered(const CallArgs& args);
  /// What carries a plan's own collective out.
  Status set_plain(const CallArgs& args);
  /// The vector that the plan works on, where it is not simply the caller's.
  void set_vector();
  void set_scatter();
  void set_gather();
  /// An allreduce of bytes of ours by bitwise or: zero but for what this rank brings.
  void set_or(std::uint64_t elements);
  void use_buffer(std::uint64_t bytes);
  void fill();
  void fill_scatter();
  void fill_gather();
  /// The result is there: gives the caller its part, once.
  Status deliver();
  void deliver_section();
  void deliver_sections();

  TeamParts parts_;
  CallArgs args_;
  TeamPlans::Use use_;
  exec::OperationArgs plan_args_;
  WorkBuffers::Buffer buffer_;
  WorkBuffers::Buffer gathered_;       ///< vectors of all ranks, to be folded here
  std::optional<CallArgs> reduction_;  ///< what they are to be folded for
  bool ours_in_ = false;               ///< the plan's input is ours and has to be filled
  bool undelivered_ = false;
  std::byte token_{};                           ///< of a barrier
  std::shared_ptr<exec::Operation> operation_;  ///< the last one started
};

}  // namespace hips::comm
