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
#include "lib/comm/control/failure_detector.hpp"
#include "lib/comm/control/wait_limits.hpp"
#include "lib/comm/setup/design.hpp"

namespace hips::comm {

/// The backend-independent part of a communicator of several ranks: it checks arguments, records calls, waits
/// for them with deadlines, and acts on the failures that the control plane reports.
class WatchedCommunicator : public Communicator {
 public:
  WatchedCommunicator(Bootstrap& bootstrap, const Config& config, const CommunicatorOptions& options);
  /// For a communicator that is derived.
  WatchedCommunicator(Rank rank, Rank size, const Config& config, const CommunicatorOptions& options);

  [[nodiscard]] Rank rank() const final { return rank_; }
  [[nodiscard]] Rank size() const final { return size_; }
  [[nodiscard]] const std::string& describe() const final { return description_; }
  [[nodiscard]] const std::string& backend() const final { return backend_; }
  [[nodiscard]] Status failure() const final { return watch_->failure(); }
  Status abort(std::string_view text) final;
  [[nodiscard]] std::int64_t timeout_ns() const final { return timeout_ns_; }
  [[nodiscard]] std::int64_t abandon_after_ns() const final {
    return timeout_ns_ != INT64_MAX ? timeout_ns_ : dead_after_ns_;
  }
  void note_delegated(const char* what) final;
  void take_back_delegated() final;
  [[nodiscard]] std::uint64_t failed_call() const final { return failed_call_; }
  bool retire() final;
  [[nodiscard]] std::optional<SpareNote> spare_note() const final;
  Status call(const CallArgs& args) final;
  Result<std::unique_ptr<Request>> prepare_request(const CallArgs& args) final;

  // For OutstandingCalls.
  /// Makes progress on the outstanding calls, unless there are none or another thread does.
  void advance_if_free();
  [[nodiscard]] bool has_outstanding_calls() const {
    return num_outstanding_.load(std::memory_order_relaxed) > 0;
  }
  /// True if it has ever started a request. Called by the thread that is in a call on this communicator.
  [[nodiscard]] bool makes_requests() const { return makes_requests_; }

  /// Connects to the other ranks. Collective. Each phase ends with an exchange of all ranks' status, so that
  /// all continue or none does.
  Status set_up(Bootstrap& bootstrap, const Config& config, const Design& design,
                const std::vector<ProcessInfo>& processes, std::uint64_t id);
  /// Its ranks may use it again; `digest`: digest_of() them.
  void allow_reuse(std::uint64_t digest) { digest_ = digest; }

 protected:
  /// Returns why this backend does not support arguments that are valid as such. Called for elements of
  /// bytes_type() only. The same on all ranks.
  [[nodiscard]] virtual Status refuse(const CallArgs& /*args*/) const { return Status::success(); }
  /// Executes a call, waiting by wait(). A repeated call allocates nothing.
  virtual Status run(const CallArgs& args) = 0;
  /// Creates a call of this backend.
  virtual std::unique_ptr<PendingCall> make_call() = 0;
  /// Makes progress on all outstanding calls without waiting.
  virtual void advance() = 0;
  /// The clock of deadlines.
  [[nodiscard]] virtual Clock& clock() const = 0;

  // Set-up, in this order. The results of all ranks are the arguments of the next step.
  virtual Result<Blob> make(const Design& design, const std::vector<ProcessInfo>& processes,
                            std::uint64_t id) = 0;
  /// The functions that the failure detector calls; valid from make() until leave().
  virtual FailureActions failure_actions() = 0;
  virtual Result<Blob> allocate(const std::vector<Blob>& offers) = 0;
  virtual Status connect(const std::vector<Blob>& addresses) = 0;

  /// Waits like a blocking call of MPI: without limit for a late peer, which it queries and reports meanwhile.
  /// Throws nothing: what is thrown while it waits fails the communicator, and the call ends with it.
  Status wait(PendingCall& call);
  /// call.start(). If that throws, the communicator fails, and no part of the call is outstanding on return.
  Status try_start(PendingCall& call);
  /// Ends the membership. Destructors of backends call it first.
  void leave();

  std::shared_ptr<FailureDetector> watch_ = std::make_shared<FailureDetector>();
  std::string description_, backend_;  ///< set by make()

 private:
  void use_again(const Config& config, const CommunicatorOptions& options) final;
  /// What calls follow and no other rank needs to know.
  void follow(const Config& config, const CommunicatorOptions& options);

  friend class WatchedRequest;
  struct Waiter;
  class ProgressLock;
  class CallerGuard;

  Status wait_until_done(PendingCall& call);
  /// Reports the exception that is being handled, as this rank's failure of the current call.
  Status found_exception();
  /// call.wait() in time slices, between which other threads may test their requests.
  Status wait_in_slices(PendingCall& call, WaitOptions options, Waiter& waiter);
  /// Lets waiting threads make progress. False if there are none.
  bool yield_progress();
  [[nodiscard]] Status check(const CallArgs& args) const;
  /// The slow path, for calls that is_valid_allreduce() does not accept.
  [[gnu::noinline]] Status call_checked(const CallArgs& args);
  /// Inlined into both paths: per-call overhead dominates small messages.
  [[gnu::always_inline]] inline Status execute(const CallArgs& args);
  [[gnu::always_inline]] inline Status run_recorded(const CallArgs& args);
  /// run(); reports to the peers if it runs out of memory.
  [[gnu::always_inline]] inline Status run_with_memory(const CallArgs& args);

  // For requests.
  Status start(PendingCall& call, const CallArgs& args, std::uint64_t& index);
  /// State of a request that is tested repeatedly: late peers are queried as in wait().
  struct Polls {
    std::uint64_t num = 0;  ///< since the start; the fields below are set by the first check
    std::int64_t begin_ns = 0, next_check_ns = 0;
    WaitLimits wait_limits{};
  };
  /// True if the call is complete.
  bool has_ended(const PendingCall& call);
  /// Empty if the call is still outstanding.
  std::optional<Status> test(PendingCall& call, std::uint64_t index, Polls& polls);
  void check_missing(PendingCall& call, Polls& polls);
  /// Publishes the missing ranks of the call, and queries and reports them when it is time.
  void check_missing(const PendingCall& call, WaitLimits& wait_limits, std::int64_t waited_ns);
  Status finish(PendingCall& call, std::uint64_t index);
  /// Records the completion of a started call. `status` becomes the status that its caller gets.
  void close(Status& status, std::uint64_t index);

  std::function<void()> progress_;
  std::int64_t timeout_ns_ = INT64_MAX;
  bool has_own_timeout_ = false;
  std::int64_t dead_after_ns_;
  Rank rank_, size_;
  ThreadMode mode_{};
  bool has_progress_thread_ = false;
  std::atomic<bool> in_call_{false};
  /// Held by the thread that makes progress, if a request is outstanding.
  std::atomic<bool> progressing_{false};
  std::atomic<int> num_wanting_{0};  ///< threads that wait for `progressing_`
  /// Started requests. Only the holder of `progressing_` changes it, so that a store suffices.
  std::atomic<int> num_outstanding_{0};
  bool makes_requests_ = false;
  std::uint64_t failed_call_ = 0;
  std::uint64_t digest_ = 0;  ///< 0: it is not used again
};

}  // namespace hips::comm
