#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "lib/comm/calls/call_record.hpp"
#include "lib/comm/control/control.hpp"

namespace hips::comm {

/// What a communicator does with what the control plane says. Called by the control thread.
struct Verdicts {
  std::function<void(const Status&)> fail;  ///< end the call under way and every later one
  std::function<void(Rank)> left;           ///< that rank said goodbye
};

/// Stands between a communicator, what carries its calls and the control plane: takes findings in, gives
/// verdicts out.
///
/// Shared with the control thread, which may call it until the last reference goes.
///
/// Threads  record() one caller at a time; everything else from any thread.
class Watchkeeper final : public GroupListener, public std::enable_shared_from_this<Watchkeeper> {
 public:
  /// Joins the control plane. `control` lives as long as the process, `verdicts` are given until leave().
  void start(Control& control, Verdicts verdicts, std::uint64_t id, Rank rank,
             std::vector<ProcessInfo> members);
  /// Says goodbye; no verdict is given afterwards.
  void leave();

  CallRecord& record() { return record_; }
  [[nodiscard]] bool failed() const { return failed_.load(std::memory_order_acquire); }
  [[nodiscard]] Status failure() const;

  /// The team found something wrong. A lost peer is only suspected: it may have said goodbye.
  void found(const Status& status);

  /// What the call in progress lacks right now. A peer that has left will not bring it.
  void waiting(std::span<const Rank> lacking, std::string text);
  /// Asks these ranks for their call of the index that this rank is in.
  void ask(std::span<const Rank> ranks);
  /// Asks all: who keeps this rank waiting may wait for somebody else.
  void ask_all();
  /// Who has not come to the call that this rank is in, as far as answers tell: "rank 3 has not come; last
  /// call of rank 3: no call yet".
  [[nodiscard]] std::string missing() const;

  // GroupListener.
  void on_failed(const Status& status) override;
  void on_left(Rank rank) override;
  void on_answer(Rank from, const CallAnswer& answer) override;
  [[nodiscard]] CallAnswer answer(std::uint64_t call_index) const override;
  [[nodiscard]] std::string activity(Rank rank) const override;
  [[nodiscard]] bool in_call() const override;

 private:
  CallRecord record_;
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;  ///< guards what follows
  Control* control_ = nullptr;
  Verdicts verdicts_;  ///< empty before start() and after leave()
  std::uint64_t id_ = 0;
  Rank rank_ = -1;
  Status failure_;
  std::vector<bool> left_;
  std::vector<CallAnswer> answers_;  ///< by rank; the last of each
  std::vector<Rank> lacking_;
  std::string lacking_text_;
  std::uint64_t lacking_call_ = 0;  ///< the call that the two are about
  Rank gone_ = -1;                  ///< had left and was lacking in that call at the last look
};

}  // namespace hips::comm
