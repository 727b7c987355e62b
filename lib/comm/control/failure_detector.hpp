#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/comm/calls/call_record.hpp"
#include "lib/comm/control/control.hpp"

namespace hips::comm {

/// How a communicator reacts to decisions of the failure detector. Called by the control thread.
struct FailureActions {
  std::function<void(const Status&)> fail;  ///< fail all outstanding and later calls
  std::function<void(Rank)> left;           ///< that rank has left the communicator
};

/// Connects a communicator and its backend to the control plane. It reports what they find wrong and calls
/// `FailureActions` when the control plane decides that the communicator has failed or that a rank has left.
///
/// Owns     shared with the control thread, which may call it until the last reference is dropped.
/// Threads  record() one caller at a time; everything else from any thread.
class FailureDetector final : public GroupListener, public std::enable_shared_from_this<FailureDetector> {
 public:
  /// Joins the control plane. `control` must live as long as the process. `actions` are called until leave().
  void start(Control& control, FailureActions actions, std::uint64_t id, Rank rank,
             std::vector<ProcessInfo> members);
  /// The same for a communicator of the ranks `members` of `from`, which has started and not left. `depends`: a rank on which
  /// `from` has failed does not make it. Local.
  void start(const FailureDetector& from, bool depends, FailureActions actions, std::uint64_t id, Rank rank,
             std::vector<Rank> members);
  /// Leaves the communicator in order; no action is called afterwards.
  void leave();

  /// The communicator has been destroyed here, and may be used again; peers that ask meanwhile get the answer "destroyed", and
  /// after how many uses.
  void retire() { is_retired_.store(true, std::memory_order_release); }
  void use_again() {
    num_ended_uses_.fetch_add(1, std::memory_order_relaxed);
    is_retired_.store(false, std::memory_order_release);
  }
  [[nodiscard]] bool is_retired() const { return is_retired_.load(std::memory_order_acquire); }

  CallRecord& record() { return record_; }
  [[nodiscard]] bool failed() const { return failed_.load(std::memory_order_acquire); }
  [[nodiscard]] Status failure() const;

  /// Fails the communicator on all ranks for a reason that names no rank of it.
  void fail(Status status);
  /// The team detected a failure. A lost peer becomes a suspect only, because it may have left in order. Ranks that disagree
  /// do so in the current call, where `status` names no other.
  void found(Status status);

  /// Records the ranks that the current call is waiting for; `text` says for what. Called every 200 ms. Reports kPeerLost if
  /// one of them left two seconds ago, and `text` has been the same since.
  void waiting(std::span<const Rank> missing, std::string text);
  /// Queries these ranks for their call with the index of this rank's current call.
  void ask(std::span<const Rank> ranks);
  /// Queries all ranks, because a missing rank may itself be waiting for another one.
  void ask_all();
  /// Names the ranks that have not started this rank's current call, according to their latest answers: "rank
  /// 3 has not arrived; last call of rank 3: no call yet".
  [[nodiscard]] std::string missing() const;

  /// Control::gather() of this communicator, which has started.
  Result<std::vector<std::optional<std::vector<std::byte>>>> gather(std::uint64_t round,
                                                                    std::span<const std::byte> mine,
                                                                    std::int64_t timeout_ns,
                                                                    const std::function<void()>& tick) {
    return control_.load()->gather(id_, round, mine, timeout_ns, tick);
  }

  [[nodiscard]] std::uint64_t id() const { return id_; }

  // GroupListener.
  void on_failed(const Status& status) override;
  void on_left(Rank rank) override;
  void on_answer(Rank from, const CallAnswer& answer) override;
  [[nodiscard]] CallAnswer answer(std::uint64_t call_index) const override;
  [[nodiscard]] std::string activity(Rank rank) const override;
  [[nodiscard]] bool in_call() const override;

 private:
  CallRecord record_;
  std::atomic<bool> failed_{false}, is_retired_{false};
  std::atomic<std::uint64_t> num_ended_uses_{0};
  void prepare(Control& control, FailureActions actions, std::uint64_t id, Rank rank, std::size_t size);
  /// To the control plane. A communicator of one rank never starts, and fails at once.
  void report(const Status& status);
  /// `gone` does not take part in `call`.
  void report_gone(Rank gone, const CallEntry& call, std::string_view how);

  std::atomic<Control*> control_{nullptr};  ///< set by start()
  mutable std::mutex mutex_;                ///< guards what follows
  FailureActions actions_;                  ///< empty before start() and after leave()
  std::uint64_t id_ = 0;
  Rank rank_ = -1;
  Status failure_;
  std::vector<bool> left_;
  std::vector<CallAnswer> answers_;  ///< by rank; the latest of each; empty before the first
  std::vector<Rank> missing_;
  std::string missing_text_;
  std::uint64_t missing_call_ = 0;  ///< index of the call that these two describe
  Rank gone_ = -1;                  ///< a missing rank that had left at the last checks of that call
  int num_checks_ = 0;              ///< of those, while nothing else has arrived
};

}  // namespace hips::comm
