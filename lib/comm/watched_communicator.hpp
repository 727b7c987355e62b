#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/wait_options.hpp"
#include "lib/comm/communicator.hpp"
#include "lib/comm/design.hpp"
#include "lib/comm/watchkeeper.hpp"

namespace hips::comm {

/// A call that has been started and is not known to have ended.
class PendingCall {
 public:
  [[nodiscard]] virtual bool done() const = 0;
  /// Moves it to its end, whose status it gives, or to the deadline: kTimeout, and the call goes on.
  virtual Status wait(const WaitOptions& options) = 0;
  /// Ranks that it lacks right now, ascending, and that in words.
  [[nodiscard]] virtual std::vector<Rank> waiting_for() const = 0;
  [[nodiscard]] virtual std::string waiting_text() const = 0;

 protected:
  ~PendingCall() = default;
};

/// An allreduce whose arguments have been checked.
struct AllreduceArgs {
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::uint64_t count = 0;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
};

/// A communicator of several ranks whatever carries its calls: arguments, the record of calls, waiting with
/// patience, deadlines, verdicts of the control plane.
class WatchedCommunicator : public Communicator {
 public:
  WatchedCommunicator(Bootstrap& bootstrap, const Config& config, const CommunicatorOptions& options);

  [[nodiscard]] Rank rank() const final { return rank_; }
  [[nodiscard]] Rank size() const final { return size_; }
  [[nodiscard]] const std::string& describe() const final { return description_; }
  [[nodiscard]] const std::string& carrier() const final { return carrier_; }
  [[nodiscard]] Status failure() const final { return watch_->failure(); }
  void note_declined(const char* what) final;
  Status allreduce(const void* in, void* out, std::uint64_t count, DataType type, ReduceOp op) final;

  /// Connects with the others; collective. Each phase ends with an exchange that carries its outcome, so that
  /// no rank goes on alone.
  Status set_up(Bootstrap& bootstrap, const Config& config, const Design& design,
                const std::vector<ProcessInfo>& processes, std::uint64_t id);

 protected:
  /// Carries out a call by wait().
  virtual Status run(const AllreduceArgs& args) = 0;

  // Set-up, in this order; what one gives goes to the next of all ranks.
  virtual Result<Blob> make(const Design& design, const std::vector<ProcessInfo>& processes,
                            std::uint64_t id) = 0;
  /// What takes the control plane's verdicts; from make() on, until leave().
  virtual Verdicts verdicts() = 0;
  virtual Result<Blob> allocate(const std::vector<Blob>& offers) = 0;
  virtual Status connect(const std::vector<Blob>& addresses) = 0;

  /// Waits as a blocking call of MPI does: for a late peer without end, looking after it meanwhile.
  Status wait(PendingCall& call, Clock& clock);
  /// Ends the membership; the first thing that a destructor does.
  void leave() { watch_->leave(); }

  std::shared_ptr<Watchkeeper> watch_ = std::make_shared<Watchkeeper>();
  std::string description_, carrier_;  ///< from make() on

 private:
  struct Waiter;
  std::function<void()> progress_;
  std::int64_t timeout_ns_ = INT64_MAX;
  Rank rank_, size_;
  ThreadMode mode_;
  std::atomic<bool> in_call_{false};
};

/// Status of a wrong argument, or success.
Status check_arguments(const void* in, const void* out, std::uint64_t count, DataType type, ReduceOp op);

}  // namespace hips::comm
