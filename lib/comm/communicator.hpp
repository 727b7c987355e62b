#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hips/status.hpp>
#include <hips/topology.hpp>
#include <hips/types.hpp>

#include "lib/base/config/config.hpp"
#include "lib/base/result.hpp"
#include "lib/comm/backend.hpp"
#include "lib/comm/calls/call_args.hpp"
#include "lib/comm/calls/pending_call.hpp"
#include "lib/comm/calls/request.hpp"
#include "lib/comm/communicator_options.hpp"
#include "lib/comm/control/failure_detector.hpp"
#include "lib/comm/control/wait_limits.hpp"
#include "lib/comm/setup/bootstrap.hpp"
#include "lib/comm/setup/spare_note.hpp"

namespace hips::comm {

/// A group of ranks that execute collectives together. The C API and the interposer are built on it. It checks arguments, records
/// calls for peers that ask, waits for them with deadlines, and acts on failures; its backend executes them.
///
/// Threads  one call at a time per communicator, as in MPI; different communicators at the same time.
/// Errors   every creation error reaches every rank. After a failed call the communicator stays failed: each
///          later call returns the same status.
class Communicator final {
 public:
  /// What split() and duplicate() need to make communicators of its ranks.
  struct Origin {
    CommunicatorOptions options;
    bool named = false;  ///< `topology` was named by options or environment, not the default
    Topology topology;
  };

  /// Builds this rank's program, compares settings with the other ranks, and connects. Collective.
  ///
  /// Errors   kInvalidArgument: a malformed spec or variable, a topology of another size. kMismatch: names
  ///          the ranks that differ and in what. kUnsupported: no transport reaches a peer, or the algorithm
  ///          does not run on this topology.
  static Result<std::unique_ptr<Communicator>> create(Bootstrap& bootstrap,
                                                      const CommunicatorOptions& options);
  /// A communicator of `size` ranks. No call is possible before use().
  Communicator(Rank rank, Rank size, std::shared_ptr<const Config> config, Origin origin);
  ~Communicator();  ///< leaves; waits for no rank
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// What the backend for use() has to know.
  [[nodiscard]] Backend::Context context() const;
  void use(std::unique_ptr<Backend> backend) { backend_ = std::move(backend); }

  [[nodiscard]] Rank rank() const { return rank_; }
  [[nodiscard]] Rank size() const { return size_; }
  /// Backend::description()
  [[nodiscard]] const std::string& describe() const { return backend_->description(); }
  /// Backend::name()
  [[nodiscard]] const std::string& backend() const { return backend_->name(); }

  /// Executes a collective call. Blocks; on return the buffers may be reused. A call that has nothing to send
  /// or receive returns at once, unless it is a barrier; a peer that passed another count finds that out by a
  /// query, after about a second.
  ///
  /// Errors   kInvalidArgument: a null or partly overlapping buffer, a count that overflows, a root that is
  ///          out of range; the call then did not take place. kUnsupported: the plan has no section for some
  ///          rank.
  ///          kMismatch, kPeerLost, kTimeout, ...: the communicator has failed.
  Status call(const CallArgs& args);

  /// Starts a call, and returns. The buffers belong to the request until it says that the call has ended.
  /// Destroy requests before their communicator.
  Result<std::unique_ptr<Request>> start(const CallArgs& args) {
    auto request = prepare_request(args);
    if (!request) return request;
    if (Status status = (*request)->start(); !status.ok()) return fail(std::move(status));
    return request;
  }
  /// Makes a persistent request. What depends on the arguments is decided here. Local.
  Result<std::unique_ptr<Request>> prepare_request(const CallArgs& args);

  // Short forms for allreduce; `in` equal to `out` means in place.
  static CallArgs allreduce_args(const void* in, void* out, std::uint64_t count, DataType type, ReduceOp op) {
    return {.collective = Collective::kAllreduce,
            .in = static_cast<const std::byte*>(in),
            .out = static_cast<std::byte*>(out),
            .count = count,
            .type = type,
            .op = op};
  }
  Status allreduce(const void* in, void* out, std::uint64_t count, DataType type, ReduceOp op) {
    return call(allreduce_args(in, out, count, type, op));
  }
  Result<std::unique_ptr<Request>> iallreduce(const void* in, void* out, std::uint64_t count, DataType type,
                                              ReduceOp op) {
    return start(allreduce_args(in, out, count, type, op));
  }
  Result<std::unique_ptr<Request>> allreduce_init(const void* in, void* out, std::uint64_t count,
                                                  DataType type, ReduceOp op) {
    return prepare_request(allreduce_args(in, out, count, type, op));
  }

  /// Records that this rank's next collective is delegated to native MPI, so that a peer that executes the
  /// same call itself finds out instead of waiting for ever. `what` must live as long as the program (a
  /// literal).
  void note_delegated(const char* what);
  /// Undoes the last note_delegated(): native MPI has refused the call on this rank alone, so it did not take place. No call
  /// in between.
  void take_back_delegated();
  /// The number of the last blocking call that ended with the communicator's failure, or was not begun for it; 0: none. After
  /// kMismatch it may be an earlier or a later one than `Status::call`, which this rank may have completed or delegated.
  [[nodiscard]] std::uint64_t failed_call() const { return failed_call_; }

  /// Why the communicator has failed; ok while it has not.
  [[nodiscard]] Status failure() const { return watch_->failure(); }

  /// Ends all calls on all ranks, and every later one, with kAborted and a message that names this rank and
  /// `text`. Returns once the communicator has failed here. Without effect after another failure.
  ///
  /// Threads  any, also while others are in calls.
  Status abort(std::string_view text);
  /// The same with an error of the caller's. Gives what the communicator has failed with on all ranks.
  Status fail_all(Status status);

  /// The longest time that a call may wait; INT64_MAX for any.
  [[nodiscard]] std::int64_t timeout_ns() const { return timeout_ns_; }
  /// How long a rank that can no longer wait for an outstanding call waits before it aborts: HIPS_TIMEOUT or,
  /// when none is set, HIPS_DEAD_AFTER.
  [[nodiscard]] std::int64_t abandon_after_ns() const {
    return timeout_ns_ != INT64_MAX ? timeout_ns_ : config_->dead_after_ns;
  }

  /// Its user has destroyed it here; peers that are still in a call hear of it. False if it cannot be used again.
  bool retire();
  /// What its ranks compare before they use it again; empty unless it is retired and has not failed.
  [[nodiscard]] std::optional<SpareNote> spare_note() const;
  /// Its ranks may use it again; `digest`: digest_of() them, not 0.
  void allow_reuse(std::uint64_t digest) { digest_ = digest; }
  /// Of its ranks and terms, for what may be used again; else 0.
  [[nodiscard]] std::uint64_t digest() const { return digest_; }
  /// Ends retirement: calls follow these settings from now on; with a null `config` that of before.
  void use_again(CommunicatorOptions options, std::shared_ptr<const Config> config = nullptr);
  /// Of this process, with those that are retired.
  static std::size_t num_alive() { return num_alive_.load(std::memory_order_relaxed); }

  enum class IfFailed : std::uint8_t { kFail, kDerive };
  /// Whether communicators of its ranks can be made without an exchange. The same on all ranks.
  [[nodiscard]] bool derives() const { return backend_->derives(); }
  /// Makes a communicator of the ranks `members`, in this order, if derives(). Local: all of them call it with the same
  /// arguments. Its id follows from this one's, `nth` and `part`, which no other derivation from this one has.
  ///
  /// Errors   kOutOfMemory, kSystem; the other ranks hear of it in their first call on the new communicator. The failure of
  ///          this one, with IfFailed::kFail: a rank that does not know of it yet gets a communicator that fails.
  Result<std::unique_ptr<Communicator>> derive(std::span<const Rank> members, std::uint64_t nth,
                                               std::uint64_t part, const CommunicatorOptions& options,
                                               IfFailed if_failed = IfFailed::kFail);
  /// In place of derive(), for a rank that has no memory for that: the others hear of it in their first call.
  Status fail_derived(std::span<const Rank> members, std::uint64_t nth, std::uint64_t part);
  /// Gathers a part of each rank that has neither died nor left, by rank; nothing stands for the others. Collective over those
  /// ranks, also once the communicator has failed; all get the same.
  ///
  /// Errors   those of Control::gather(). kInvalidArgument: another thread is in a call.
  Result<std::vector<std::optional<Blob>>> gather_left(std::span<const std::byte> mine);
  /// 1, 2, ...: for derivations that all ranks of this communicator make in the same order.
  std::uint64_t next_derivation() { return ++num_derivations_; }

  /// The same on all ranks, and of no other communicator; 0: it has one rank.
  [[nodiscard]] std::uint64_t id() const { return watch_->id(); }
  [[nodiscard]] const Origin& origin() const { return origin_; }

  // For backends.
  /// Executes a call that is not outstanding: sets its arguments, starts it, and waits.
  template <typename Call>
  Status finish_blocking(Call& call, const CallArgs& args) {
    if (Status status = call.set(args); !status.ok()) return status;
    try {
      call.start();
    } catch (...) {
      return end_after_throw(call);
    }
    return wait(call);
  }
  /// Waits like a blocking call of MPI: without limit for a late peer, which it queries and reports meanwhile.
  /// Throws nothing: what is thrown while it waits fails the communicator, and the call ends with it.
  Status wait(PendingCall& call);

  // For OutstandingCalls.
  /// Makes progress on the outstanding calls, unless there are none or another thread does.
  void advance_if_free();
  [[nodiscard]] bool has_outstanding_calls() const {
    return num_outstanding_.load(std::memory_order_relaxed) > 0;
  }
  /// True if it has ever started a request. Called by the thread that is in a call on this communicator.
  [[nodiscard]] bool makes_requests() const { return makes_requests_; }

 private:
  friend class CallRequest;
  struct Waiter;
  class ProgressLock;
  class CallerGuard;

  // Set-up.
  static std::unique_ptr<Communicator> of_one_rank(std::shared_ptr<const Config> config, Origin origin);
  /// derive() for two members and more.
  Result<std::unique_ptr<Communicator>> derive_several(std::span<const Rank> members, std::uint64_t id,
                                                       Origin origin, IfFailed if_failed);
  /// Connects to the other ranks. Collective. Each phase ends with an exchange of all ranks' status, so that
  /// all continue or none does.
  Status set_up(SetUpExchanges& exchanges, const Design& design, const std::vector<ProcessInfo>& processes,
                std::uint64_t id);
  /// What calls follow and no other rank needs to know.
  void follow(std::shared_ptr<const Config> config, const CommunicatorOptions& options);

  Status wait_until_done(PendingCall& call);
  /// Reports the exception that is being handled, as this rank's failure of the current call.
  Status found_exception();
  /// call.wait() in time slices, between which other threads may test their requests.
  Status wait_in_slices(PendingCall& call, WaitOptions options, Waiter& waiter);
  /// Lets waiting threads make progress. False if there are none.
  bool yield_progress();
  /// The time between two ticks of a wait.
  [[nodiscard]] std::int64_t tick_ns() const;
  [[nodiscard]] Status check(const CallArgs& args) const;
  /// For calls that are wrong, or that use user-defined operations or types of bytes.
  [[gnu::noinline]] Status call_checked(const CallArgs& args);
  /// Inlined into both paths: per-call overhead dominates small messages.
  [[gnu::always_inline]] inline Status execute(const CallArgs& args);
  [[gnu::always_inline]] inline Status run_recorded(const CallArgs& args);
  /// Backend::run(); reports to the peers if it runs out of memory.
  [[gnu::always_inline]] inline Status run_with_memory(const CallArgs& args);

  /// Handles what call.start() has thrown: the communicator fails, and no part of the call is outstanding on return.
  Status end_after_throw(PendingCall& call);

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

  Rank rank_, size_;
  std::shared_ptr<const Config> config_;
  Origin origin_;
  std::uint64_t num_derivations_ = 0, num_gathers_ = 0;
  std::shared_ptr<FailureDetector> watch_ = std::make_shared<FailureDetector>();
  std::unique_ptr<Backend> backend_;

  std::function<void()> progress_;
  const std::atomic<bool>* often_ = nullptr;
  std::int64_t timeout_ns_ = INT64_MAX;
  bool has_own_timeout_ = false;
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

  static inline std::atomic<std::size_t> num_alive_{0};
};

/// What ranks get after `rank` has aborted the communicator.
Status aborted_by(Rank rank, std::string_view text);

}  // namespace hips::comm
