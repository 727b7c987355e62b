#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/memory_registry.hpp"
#include "lib/exec/compiled_program.hpp"
#include "lib/exec/layout.hpp"
#include "lib/exec/team.hpp"
#include "lib/exec/temporary_registration.hpp"

namespace hips::exec {

class TeamImpl;
struct UserRegion;

/// State of one outstanding collective. It is plain data that TeamImpl changes. It is reused, so that a call
/// of a known shape does not allocate.
class OperationImpl final : public Operation {
 public:
  explicit OperationImpl(TeamImpl& team) : team_(&team) {}

  [[nodiscard]] bool done() const override { return done_.load(std::memory_order_acquire); }
  [[nodiscard]] const Status& status() const override { return status_; }
  [[nodiscard]] std::uint64_t sequence() const override { return sequence_; }
  [[nodiscard]] std::vector<Rank> waiting_for() const override;
  [[nodiscard]] std::string waiting_text() const override;
  /// The number of the user's call, for messages.
  [[nodiscard]] std::uint64_t number() const {
    return args_.user_call && args_.user_call->number > 0 ? args_.user_call->number : sequence_;
  }

 private:
  friend class TeamImpl;

  struct StepState {
    std::int32_t next = 0;  ///< number of segments posted (sends) or done (other steps)
    /// Number of leading segments that are locally complete (sends) or done (other steps).
    std::int32_t finished = 0;
    bool listed = false;                ///< the step is in the work list
    bool queued = false;                ///< a segment is in a NIC queue
    std::int64_t waiting_since_ns = 0;  ///< trace: since when only a peer's message has been missing
    std::int32_t waiting_source = -1;   ///< trace: the last source that was missing
  };
  /// Segments of a send that completed before an earlier one of the same send.
  struct EarlyCompletion {
    StepId step;
    std::int32_t segment;
  };

  TeamImpl* team_;
  std::atomic<bool> done_{true};
  Status status_;
  std::uint64_t sequence_ = 0;
  OperationArgs args_;
  const CompiledProgram* program_ = nullptr;
  std::shared_ptr<const Layout> layout_;
  std::int32_t steps_left_ = 0;
  std::int32_t posts_in_flight_ = 0;
  bool pooled_ = false;      ///< it is in the team's pool, for good
  bool mismatched_ = false;  ///< a message belongs to another call; nothing more is reduced or sent
  std::int64_t begin_ns_ = 0;
  std::vector<StepState> steps_;
  std::vector<StepId> work_;
  bool has_work_ = false;                 ///< the operation is in the team's `with_work_`
  std::vector<std::uint64_t> in_base_;    ///< by in-channel: number of this operation's first segment
  std::vector<std::int32_t> out_cursor_;  ///< by out-channel: index of the head in CompiledProgram::sends
  std::vector<EarlyCompletion> early_;
  std::vector<std::byte> scratch_;
  bool granted_ = false;  ///< this rank has granted peers access to `out`
  /// Of `out`, on transports that register freely; ends before done_ is set.
  TemporaryRegistration temporary_registration_;
  UserRange* in_range_ = nullptr;  ///< registered memory that contains `in`; held until the operation ends
  UserRange* out_range_ = nullptr;
  UserRegion* in_memory_ = nullptr;  ///< its registrations with the engine's devices; null if none is needed
  UserRegion* out_memory_ = nullptr;
};

}  // namespace hips::exec
