#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/comm/calls/pending_call.hpp"
#include "lib/comm/communicator.hpp"
#include "lib/comm/control/patience.hpp"
#include "lib/comm/control/watchkeeper.hpp"
#include "lib/comm/setup/design.hpp"

namespace hips::comm {

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
  Status abort(std::string_view text) final;
  [[nodiscard]] std::int64_t timeout_ns() const final { return timeout_ns_; }
  [[nodiscard]] std::int64_t abandon_after_ns() const final {
    return timeout_ns_ != INT64_MAX ? timeout_ns_ : dead_after_ns_;
  }
  void note_declined(const char* what) final;
  Status call(const CallArgs& args) final;
  Result<std::unique_ptr<Request>> prepare_request(const CallArgs& args) final;

  // For InFlight.
  /// Moves the calls under way on, unless there are none or another thread does.
  void advance_if_free();
  [[nodiscard]] bool has_calls_under_way() const {
    return num_under_way_.load(std::memory_order_relaxed) > 0;
  }
  /// Has it ever made a request? Asked by the thread that is in a call here.
  [[nodiscard]] bool makes_requests() const { return makes_requests_; }

  /// Connects with the others; collective. Each phase ends with an exchange that carries its outcome, so that
  /// no rank goes on alone.
  Status set_up(Bootstrap& bootstrap, const Config& config, const Design& design,
                const std::vector<ProcessInfo>& processes, std::uint64_t id);

 protected:
  /// What this carrier has against arguments that are right as such; asked only where elements are
  /// bytes_type(). The same on all ranks.
  [[nodiscard]] virtual Status refuse(const CallArgs& /*args*/) const { return Status::success(); }
  /// Carries out a call by wait(); allocates nothing that an earlier one alike has allocated.
  virtual Status run(const CallArgs& args) = 0;
  /// A call that can be given arguments and started, many times.
  virtual std::unique_ptr<PendingCall> make_call() = 0;
  /// Moves all calls under way on, without waiting.
  virtual void advance() = 0;
  /// Time, for deadlines.
  [[nodiscard]] virtual Clock& clock() const = 0;

  // Set-up, in this order; what one gives goes to the next of all ranks.
  virtual Result<Blob> make(const Design& design, const std::vector<ProcessInfo>& processes,
                            std::uint64_t id) = 0;
  /// What takes the control plane's verdicts; from make() on, until leave().
  virtual Verdicts verdicts() = 0;
  virtual Result<Blob> allocate(const std::vector<Blob>& offers) = 0;
  virtual Status connect(const std::vector<Blob>& addresses) = 0;

  /// Waits as a blocking call of MPI does: for a late peer without end, looking after it meanwhile.
  Status wait(PendingCall& call);
  /// Ends the membership; the first thing that a destructor does.
  void leave();

  std::shared_ptr<Watchkeeper> watch_ = std::make_shared<Watchkeeper>();
  std::string description_, carrier_;  ///< from make() on

 private:
  friend class WatchedRequest;
  struct Waiter;
  class Moving;
  class Starting;

  /// call.wait(), and other threads get at their requests meanwhile.
  Status wait_in_turns(PendingCall& call, WaitOptions options, Waiter& waiter);
  /// False: nobody wants to move anything.
  bool make_way();
  [[nodiscard]] Status check(const CallArgs& args) const;
  /// A call of which plainly_right() does not think well.
  [[gnu::noinline]] Status call_checked(const CallArgs& args);
  /// Inlined twice: a small call feels every step.
  [[gnu::always_inline]] inline Status carry_out(const CallArgs& args);
  [[gnu::always_inline]] inline Status run_recorded(const CallArgs& args);
  /// run(); where it has no memory, the others hear of it.
  [[gnu::always_inline]] inline Status run_with_memory(const CallArgs& args);

  // For requests.
  Status start(PendingCall& call, const CallArgs& args, std::uint64_t& index);
  /// A request that is tested again and again is looked after as one that is waited for.
  struct Polls {
    std::uint64_t num = 0;  ///< since the start; the others begin with the first look
    std::int64_t begin_ns = 0, next_look_ns = 0;
    Patience patience{};
  };
  /// Has the call ended, whoever moved it?
  bool has_ended(const PendingCall& call);
  /// Empty: the call goes on.
  std::optional<Status> test(PendingCall& call, std::uint64_t index, Polls& polls);
  void look_after(PendingCall& call, Polls& polls);
  /// Says whom the call lacks, and asks them when it is time.
  void look_after(const PendingCall& call, Patience& patience, std::int64_t waited_ns);
  Status finish(PendingCall& call, std::uint64_t index);
  /// A started call has ended with `status`, which becomes what its caller gets to know.
  void close(Status& status, std::uint64_t index);

  std::function<void()> progress_;
  std::int64_t timeout_ns_ = INT64_MAX, dead_after_ns_;
  Rank rank_, size_;
  ThreadMode mode_;
  bool has_progress_thread_;
  std::atomic<bool> in_call_{false};
  /// Held by who moves the calls under way, where there are any.
  std::atomic<bool> moving_{false};
  std::atomic<int> num_wanting_{0};  ///< threads that wait to hold it
  /// Started requests. Changed by who may move calls, so that it takes no more than a store.
  std::atomic<int> num_under_way_{0};
  bool makes_requests_ = false;
};

}  // namespace hips::comm
