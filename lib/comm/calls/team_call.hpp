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

/// The parts of a communicator that its calls on a team share.
struct TeamParts {
  exec::Engine& engine;
  exec::Team& team;
  TeamPlans& plans;
  WorkBuffers& buffers;
  Rank rank = -1;
  Rank size = 0;
  bool by_rank = false;  ///< plans reduce operands in rank order
};

/// A call that a team executes by a plan. It gives the plan a vector in block order and copies this rank's part
/// of the result to the caller.
///
/// | collective      | the plan's vector                                         | copies                          |
/// |-----------------|-----------------------------------------------------------|---------------------------------|
/// | allreduce       | the caller's                                              | none                            |
/// | bcast           | the caller's                                              | none                            |
/// | reduce          | the caller's; not on the root: output to a work buffer    | none                            |
/// | reduce_scatter  | in order: the caller's input and a work buffer            | this rank's section             |
/// |                 | else: a work buffer                                       | the input; this rank's section  |
/// | allgather       | in order: the caller's output                             | this rank's section             |
/// |                 | else: a work buffer                                       | all sections                    |
/// | gather          | as allgather; not on the root: a work buffer              | as allgather                    |
/// | scatter         | in order, on the root: the caller's input                 | this rank's section             |
/// |                 | else: a work buffer                                       | the input; this rank's section  |
/// | alltoall        | those of a scatter from each rank                         | those                           |
/// | barrier         | one byte of this object                                   | none                            |
/// | ordered user op | an allgather's (ordered_reduce.hpp)                       | the allgather's                 |
///
/// "In order": the plan's blocks are in rank order (Arrangement::in_order).
///
/// If no plan can be pruned to the collective (TeamPlans::Use::by_allreduce), an allreduce replaces it, at twice
/// the bytes. A reduce_scatter keeps this rank's section of the result. An allgather and a bcast are an
/// allreduce of bytes by bitwise or: every rank passes zeros outside of the data that it contributes, and
/// 0 | x = x.
class TeamCall final : public PendingCall {
 public:
  explicit TeamCall(const TeamParts& parts) : parts_(parts) {}

  Status set(const CallArgs& args) override;
  void start() override;
  /// start() for use inside exec::EngineClient::advance().
  void start_in_progress();
  std::optional<Status> test() override;
  [[nodiscard]] bool done() const override;
  Status wait(const WaitOptions& options) override;
  void while_still(const std::function<void()>& visit) override { (void)parts_.engine.while_still(visit); }
  [[nodiscard]] std::vector<Rank> waiting_for() const override;
  [[nodiscard]] std::string waiting_text() const override;

 private:
  /// True for a reduction by a function that does not commute, if the plan does not reduce in rank order.
  [[nodiscard]] bool is_gathered(const CallArgs& args) const {
    return is_ordered(args.op) && reduces(args.collective) && !parts_.by_rank;
  }
  Status set_gathered(const CallArgs& args);
  /// Prepares a call whose collective a program of the team executes.
  Status set_plain(const CallArgs& args);
  /// An alltoall is a scatter from each rank, all at once.
  Status set_alltoall(const CallArgs& args);
  std::optional<Status> test_alltoall();
  Status wait_for_alltoall(const WaitOptions& options);
  template <typename Visit>
  void for_each_scatter(const Visit& visit);
  /// The first scatter that is not complete, or the last one.
  [[nodiscard]] const TeamCall& unfinished_scatter() const;
  /// Sets the plan's vector if it is not the caller's.
  void set_vector();
  void set_scatter();
  void set_gather();
  void set_rooted_scatter();
  /// Makes the call an allreduce of the work buffer's bytes by bitwise or; see above.
  void set_bitwise_or(std::uint64_t elements);
  void use_buffer(std::uint64_t bytes);
  void fill();
  void fill_scatter();
  void fill_gather();
  /// Copies this rank's part of a complete result to the caller, once.
  Status deliver();
  void deliver_section();
  /// The root of a scatter has its section where it is to be.
  [[nodiscard]] bool is_section_in_place() const;
  void deliver_sections();

  TeamParts parts_;
  CallArgs args_;
  TeamPlans::Use use_;
  exec::OperationArgs plan_args_;
  WorkBuffers::Buffer buffer_;
  WorkBuffers::Buffer gathered_;       ///< vectors of all ranks, to be reduced by this rank
  std::optional<CallArgs> reduction_;  ///< the call for which they are reduced
  bool input_in_buffer_ = false;       ///< the plan's input is `buffer_` and has to be filled
  bool undelivered_ = false;
  std::byte token_{};                           ///< the vector of a barrier
  std::shared_ptr<exec::Operation> operation_;  ///< the last one started
  bool is_alltoall_ = false;
  std::vector<std::unique_ptr<TeamCall>> scatters_;  ///< of an alltoall, by root
};

}  // namespace hips::comm
