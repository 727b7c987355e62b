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

#include <hips/status.hpp>
#include <hips/topology.hpp>
#include <hips/types.hpp>

#include "lib/base/result.hpp"
#include "lib/base/wait/clock.hpp"
#include "lib/comm/calls/call_args.hpp"
#include "lib/comm/calls/request.hpp"
#include "lib/comm/setup/bootstrap.hpp"

namespace hips {
struct Config;
}  // namespace hips

namespace hips::comm {

/// Options of create(). An empty value means: from the environment, else the default.
struct CommunicatorOptions {
  std::optional<std::string> topology{};   ///< "bcube:3,1"; default: one switch that connects all ranks
  std::optional<std::string> algorithm{};  ///< default: chosen by size
  std::optional<std::string> pattern{};    ///< "mesh,ring"; default: by size on switches, ring on cables
  std::string name = "communicator";       ///< in logs and errors
  ThreadMode thread_mode = ThreadMode::kSerialized;
  /// Time of waits, deadlines and traces; null: SystemClock. Taken from the first communicator of a process.
  Clock* clock = nullptr;
  /// As hips_bootstrap_t::progress: called about every millisecond, on the waiting thread, while a call
  /// waits. Empty: the bootstrap's.
  std::function<void()> progress{};
  /// Lets a progress thread make progress on non-blocking calls, unless HIPS_PROGRESS_THREAD says otherwise:
  /// for callers that may wait elsewhere while peers wait for those calls.
  bool progress_thread = false;
  /// The communicator has only some of the job's ranks. Variables that name a topology, a pattern for each level
  /// or a stored plan then do not apply.
  bool is_part = false;
  std::optional<std::int64_t> timeout_ns{};  ///< longest time that a call may wait; default: HIPS_TIMEOUT
  /// Why this rank cannot take part, if not ok: the error of all ranks, with Scope::kCommunicator.
  Status refused{};
  /// Between nodes, a communicator of the same ranks that all have destroyed may be used again (SpareCommunicators). The same on
  /// all ranks.
  bool may_reuse = false;
};

/// A spare communicator, as its ranks compare it.
struct SpareNote {
  std::uint64_t digest = 0;  ///< of its ranks and terms
  std::uint64_t id = 0;
  std::uint64_t calls = 0;  ///< that it has had

  friend bool operator==(const SpareNote&, const SpareNote&) = default;
};

/// A group of ranks that execute collectives together. The C API and the interposer are built on it.
///
/// Threads  one call at a time per communicator, as in MPI; different communicators at the same time.
/// Errors   every creation error reaches every rank. After a failed call the communicator stays failed: each
///          later call returns the same status.
class Communicator {
 public:
  /// Builds this rank's program, compares settings with the other ranks, and connects. Collective.
  ///
  /// Errors   kInvalidArgument: a malformed spec or variable, a topology of another size. kMismatch: names
  ///          the ranks that differ and in what. kUnsupported: no transport reaches a peer, or the algorithm
  ///          does not run on this topology.
  static Result<std::unique_ptr<Communicator>> create(Bootstrap& bootstrap,
                                                      const CommunicatorOptions& options);
  Communicator() { num_alive_.fetch_add(1, std::memory_order_relaxed); }
  virtual ~Communicator() {
    num_alive_.fetch_sub(1, std::memory_order_relaxed);
  }  ///< leaves; waits for no rank
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  [[nodiscard]] virtual Rank rank() const = 0;
  [[nodiscard]] virtual Rank size() const = 0;
  /// "HiPS on BCube(3,1), 2 lanes, mesh; shm; emulated: ..."
  [[nodiscard]] virtual const std::string& describe() const = 0;
  /// The backend or transports, as one word: "memory" that all ranks share, "shm", "shm,verbs".
  [[nodiscard]] virtual const std::string& backend() const = 0;

  /// Executes a collective call. Blocks; on return the buffers may be reused. A call that has nothing to send
  /// or receive returns at once, unless it is a barrier; a peer that passed another count finds that out by a
  /// query, after about a second.
  ///
  /// Errors   kInvalidArgument: a null or partly overlapping buffer, a count that overflows, a root that is
  ///          out of range; the call then did not take place. kUnsupported: the plan has no section for some
  ///          rank.
  ///          kMismatch, kPeerLost, kTimeout, ...: the communicator has failed.
  virtual Status call(const CallArgs& args) = 0;

  /// Starts a call, and returns. The buffers belong to the request until it says that the call has ended.
  /// Destroy requests before their communicator.
  Result<std::unique_ptr<Request>> start(const CallArgs& args) {
    auto request = prepare_request(args);
    if (!request) return request;
    if (Status status = (*request)->start(); !status.ok()) return fail(std::move(status));
    return request;
  }
  /// Makes a persistent request. What depends on the arguments is decided here. Local.
  virtual Result<std::unique_ptr<Request>> prepare_request(const CallArgs& args) = 0;

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
  virtual void note_delegated(const char* what) = 0;
  /// Undoes the last note_delegated(): native MPI has refused the call on this rank alone, so it did not take place. No call
  /// in between.
  virtual void take_back_delegated() {}
  /// The number of the last blocking call that ended with the communicator's failure, or was not begun for it; 0: none. After
  /// kMismatch it may be an earlier or a later one than `Status::call`, which this rank may have completed or delegated.
  [[nodiscard]] virtual std::uint64_t failed_call() const { return 0; }

  /// Why the communicator has failed; ok while it has not.
  [[nodiscard]] virtual Status failure() const = 0;

  /// Ends all calls on all ranks, and every later one, with kAborted and a message that names this rank and
  /// `text`. Returns once the communicator has failed here. Without effect after another failure.
  ///
  /// Threads  any, also while others are in calls.
  virtual Status abort(std::string_view /*text*/) {
    return Status::error(Code::kUnsupported, "this communicator cannot be aborted");
  }

  /// The longest time that a call may wait; INT64_MAX for any.
  [[nodiscard]] virtual std::int64_t timeout_ns() const { return INT64_MAX; }
  /// How long a rank that can no longer wait for an outstanding call waits before it aborts: HIPS_TIMEOUT or,
  /// when none is set, HIPS_DEAD_AFTER.
  [[nodiscard]] virtual std::int64_t abandon_after_ns() const { return 0; }

  /// Its user has destroyed it here; peers that are still in a call hear of it. False if it cannot be used again.
  virtual bool retire() { return false; }
  /// What its ranks compare before they use it again; empty unless it is retired and has not failed.
  [[nodiscard]] virtual std::optional<SpareNote> spare_note() const { return std::nullopt; }
  /// Of this process, with those that are retired.
  static std::size_t num_alive() { return num_alive_.load(std::memory_order_relaxed); }

  enum class IfFailed : std::uint8_t { kFail, kDerive };
  /// Whether communicators of its ranks can be made without an exchange. The same on all ranks.
  [[nodiscard]] virtual bool derives() const { return false; }
  /// Makes a communicator of the ranks `members`, in this order, if derives(). Local: all of them call it with the same
  /// arguments. Its id follows from this one's, `nth` and `part`, which no other derivation from this one has.
  ///
  /// Errors   kOutOfMemory, kSystem; the other ranks hear of it in their first call on the new communicator. The failure of
  ///          this one, with IfFailed::kFail: a rank that does not know of it yet gets a communicator that fails.
  Result<std::unique_ptr<Communicator>> derive(std::span<const Rank> members, std::uint64_t nth,
                                               std::uint64_t part, const CommunicatorOptions& options,
                                               IfFailed if_failed = IfFailed::kFail);
  /// In place of derive(), for a rank that has no memory for that: the others hear of it in their first call.
  virtual Status fail_derived(std::span<const Rank> /*members*/, std::uint64_t /*nth*/,
                              std::uint64_t /*part*/) {
    return Status::error(Code::kInternal, "this communicator derives no others");
  }
  /// 1, 2, ...: for derivations that all ranks of this communicator make in the same order.
  std::uint64_t next_derivation() { return ++num_derivations_; }

  /// What split() and duplicate() need to make communicators of its ranks.
  struct Origin {
    CommunicatorOptions options;
    bool named = false;  ///< `topology` was named by options or environment, not the default
    Topology topology;
  };
  [[nodiscard]] const Origin& origin() const { return origin_; }

 private:
  /// derive() for two members and more.
  virtual Result<std::unique_ptr<Communicator>> make_derived(std::span<const Rank> /*members*/,
                                                             std::uint64_t /*nth*/, std::uint64_t /*part*/,
                                                             const CommunicatorOptions& /*options*/,
                                                             IfFailed /*if_failed*/) {
    return fail(Code::kInternal, "this communicator derives no others");
  }

  /// Ends retirement: calls follow these options from now on.
  virtual void use_again(const Config& /*config*/, const CommunicatorOptions& /*options*/) {}

  static inline std::atomic<std::size_t> num_alive_{0};
  Origin origin_;
  std::uint64_t num_derivations_ = 0;
};

/// What ranks get after `rank` has aborted the communicator.
Status aborted_by(Rank rank, std::string_view text);

}  // namespace hips::comm
