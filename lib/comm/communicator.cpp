#include "lib/comm/communicator.hpp"

#include <sched.h>

#include <algorithm>
#include <ctime>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "lib/base/exception_status.hpp"
#include "lib/base/log.hpp"
#include "lib/comm/calls/call_request.hpp"
#include "lib/comm/calls/outstanding_calls.hpp"
#include "lib/comm/control/wait_limits.hpp"
#include "lib/comm/fork_guard.hpp"
#include "lib/comm/progress_thread.hpp"
#include "lib/reduce/user_op.hpp"

namespace hips::comm {
namespace {

using log::Subsystem;

constexpr std::int64_t kCheckEveryNs = 200'000'000;
/// Time in which the control threads of all ranks answer a query, as a rule.
constexpr std::int64_t kAnswersNs = 200'000'000;
constexpr std::int64_t kProgressEveryNs = 1'000'000, kProgressOftenNs = 20'000;
/// Time slice in which a waiting thread keeps other threads from their requests of the same communicator. It
/// grows while no other thread waits.
constexpr std::int64_t kSliceNs = 1'000'000, kLongestSliceNs = 16'000'000;

/// The status of a complete call whose wait returned `status`. After kTimeout another thread has completed the
/// call, so its own status counts.
Status outcome(PendingCall& call, Status status) {
  return status.code == Code::kTimeout ? call.wait({}) : status;
}

}  // namespace

Communicator::Communicator(Rank rank, Rank size, std::shared_ptr<const Config> config, Origin origin)
    : rank_(rank), size_(size), origin_(std::move(origin)) {
  follow(std::move(config), origin_.options);
  num_alive_.fetch_add(1, std::memory_order_relaxed);
}

Communicator::~Communicator() {
  if (in_forked_child()) {
    // It belongs to the parent; closing it would disturb the peers.
    (void)backend_.release();
  } else {
    if (makes_requests_) OutstandingCalls::process().remove(*this);
    watch_->leave();
    backend_.reset();
  }
  num_alive_.fetch_sub(1, std::memory_order_relaxed);
}

void Communicator::follow(std::shared_ptr<const Config> config, const CommunicatorOptions& options) {
  config_ = std::move(config);
  progress_ = options.progress;
  often_ = options.often;
  timeout_ns_ = options.timeout_ns.value_or(config_->timeout_ns.value_or(INT64_MAX));
  has_own_timeout_ = options.timeout_ns.has_value();
  mode_ = options.thread_mode;
  has_progress_thread_ = size_ > 1 && config_->progress_thread.value_or(options.progress_thread);
}

Backend::Context Communicator::context() const {
  return {.config = config_,
          .clock = origin_.options.clock,
          .rank = rank_,
          .size = size_,
          .on_error = [watch = watch_.get()](const Status& status) { watch->found(status); }};
}

/// The periodic work of a blocking call while it waits.
struct Communicator::Waiter {
  Communicator& communicator;
  PendingCall& call;
  WaitLimits wait_limits;
  std::int64_t before_ns = 0;  ///< waited before this time slice
  std::int64_t next_check_ns = kCheckEveryNs;

  /// Nothing is locked here, so that the program's callback may create and free communicators.
  void tick(std::int64_t in_slice_ns = 0) {
    call.while_still([&] { check(before_ns + in_slice_ns); });
    advance_others();
  }

 private:
  void advance_others() {
    if (communicator.progress_) communicator.progress_();
    OutstandingCalls::process().advance_others(communicator);
  }
  void check(std::int64_t waited_ns) {
    // The caller's runtime needs progress more often than this check is useful.
    if (waited_ns < next_check_ns) return;
    next_check_ns = waited_ns + kCheckEveryNs;
    communicator.check_missing(call, wait_limits, waited_ns);
  }
};

void Communicator::check_missing(const PendingCall& call, WaitLimits& wait_limits, std::int64_t waited_ns) {
  const std::vector<Rank> missing = call.waiting_for();
  watch_->waiting(missing, call.waiting_text());
  const WaitLimits::Actions actions = wait_limits.at(waited_ns);
  if (actions.ask) watch_->ask(missing);
  if (actions.ask_all) watch_->ask_all();
  if (actions.warn)
    log::warn(Subsystem::kComm, "{} has waited {} s: {}", to_string(watch_->record().current()),
              waited_ns / 1'000'000'000, watch_->missing());
}

Status Communicator::wait(PendingCall& call) {
  try {
    return wait_until_done(call);
  } catch (...) {
    // The call still uses the caller's buffers. The failure ends it on all ranks.
    Status thrown = found_exception();
    Status status = wait(call);
    return status.ok() || watch_->failed() ? status : thrown;
  }
}

Status Communicator::end_after_throw(PendingCall& call) {
  Status status = found_exception();
  (void)wait(call);  // a part of it may have been started
  return status;
}

Status Communicator::found_exception() {
  Status status = status_of_exception();
  try {
    status.rank = rank_;
    status.message =
        fmt::format("rank {}: {} in {}", rank_, status.message, to_string(watch_->record().current()));
  } catch (const std::bad_alloc&) {  // the short message has to do
  }
  watch_->found(status);
  return status;
}

std::int64_t Communicator::tick_ns() const {
  if (progress_ && often_ && often_->load(std::memory_order_relaxed)) return kProgressOftenNs;
  return progress_ || OutstandingCalls::process().has_others(*this) ? kProgressEveryNs : kCheckEveryNs;
}

Status Communicator::wait_until_done(PendingCall& call) {
  Waiter waiter{*this, call, {}};
  WaitOptions options;
  options.tick_ns = tick_ns();
  // Captures one pointer, so that std::function allocates nothing.
  options.on_tick = [&waiter](std::int64_t waited_ns) { waiter.tick(waited_ns); };
  if (timeout_ns_ != INT64_MAX) options.deadline_ns = backend_->clock().now_ns() + timeout_ns_;
  Status status = wait_in_slices(call, options, waiter);
  if (call.done()) return outcome(call, std::move(status));

  // The user's deadline has passed. A short extra wait finds out who is missing, and may even complete the call.
  watch_->ask_all();
  options.deadline_ns = backend_->clock().now_ns() + kAnswersNs;
  if (Status late = wait_in_slices(call, options, waiter); call.done()) return outcome(call, std::move(late));

  // The operation owns the buffers until it is complete; the failure completes it on all ranks.
  status.scope = Scope::kCommunicator;
  const double seconds = static_cast<double>(timeout_ns_) / 1e9;
  status.message =
      fmt::format("rank {} gave up {} after {}: {}", rank_, to_string(watch_->record().current()),
                  has_own_timeout_ ? fmt::format("its timeout of {:g} s", seconds)
                                   : fmt::format("{:g} s (HIPS_TIMEOUT)", seconds),
                  watch_->missing());
  watch_->found(status);
  options.deadline_ns = INT64_MAX;
  return wait_in_slices(call, options, waiter);
}

Status Communicator::wait_in_slices(PendingCall& call, WaitOptions options, Waiter& waiter) {
  // Same condition as in ProgressLock: no other thread needs progress without requests or with one thread.
  if (mode_ == ThreadMode::kSingle || num_outstanding_.load(std::memory_order_relaxed) == 0)
    return call.wait(options);
  const std::int64_t deadline_ns = options.deadline_ns, before_ns = waiter.before_ns;
  std::int64_t now_ns = backend_->clock().now_ns();
  const std::int64_t begin_ns = now_ns;
  for (std::int64_t slice_ns = kSliceNs;;) {
    options.deadline_ns = std::min(deadline_ns, now_ns + slice_ns);
    Status status = call.wait(options);
    if (call.done()) return outcome(call, std::move(status));
    now_ns = backend_->clock().now_ns();
    if (now_ns >= deadline_ns) return status;
    waiter.before_ns = before_ns + now_ns - begin_ns;
    waiter.tick();
    slice_ns = yield_progress() ? kSliceNs : std::min(2 * slice_ns, kLongestSliceNs);
  }
}

bool Communicator::yield_progress() {
  constexpr int kMostYields = 100;  // a waiting thread may not be scheduled for long
  const int num_wanting = num_wanting_.load(std::memory_order_relaxed);
  if (num_wanting == 0) return false;
  progressing_.store(false, std::memory_order_release);
  for (int i = 0; i < kMostYields && num_wanting_.load(std::memory_order_relaxed) >= num_wanting; ++i)
    sched_yield();
  while (progressing_.exchange(true, std::memory_order_acquire)) sched_yield();
  return true;
}

/// Makes this thread the only one that makes progress on the communicator's calls. A thread that waits for long
/// yields from time to time: requests of other threads may be complete, and the awaited call may depend on what
/// those threads do next.
///
/// Without outstanding requests nothing is locked, because no other thread needs progress. With a single thread
/// the flag only guards against progress from inside its own wait, and costs a store.
class Communicator::ProgressLock {
 public:
  explicit ProgressLock(Communicator& communicator)
      : flag_(communicator.progressing_),
        // Acquired: without a lock this thread touches what the thread that closed the last request has written.
        locked_(communicator.num_outstanding_.load(std::memory_order_acquire) > 0) {
    if (!locked_) return;
    if (communicator.mode_ == ThreadMode::kSingle && !communicator.has_progress_thread_) {
      flag_.store(true, std::memory_order_relaxed);
    } else {
      if (!flag_.exchange(true, std::memory_order_acquire)) return;
      communicator.num_wanting_.fetch_add(1, std::memory_order_relaxed);
      while (flag_.exchange(true, std::memory_order_acquire)) sched_yield();
      communicator.num_wanting_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  ~ProgressLock() {
    if (locked_) flag_.store(false, std::memory_order_release);
  }
  ProgressLock(const ProgressLock&) = delete;
  ProgressLock& operator=(const ProgressLock&) = delete;

 private:
  std::atomic<bool>& flag_;
  bool locked_;
};

/// Detects concurrent calls of several threads.
class Communicator::CallerGuard {
 public:
  // Finds most misuse at the cost of two plain stores. A thread sanitizer finds all of it.
  explicit CallerGuard(Communicator& communicator)
      : in_call_(communicator.in_call_),
        alone_(communicator.mode_ != ThreadMode::kSerialized || !in_call_.load(std::memory_order_relaxed)) {
    if (alone_) in_call_.store(true, std::memory_order_relaxed);
  }
  ~CallerGuard() {
    if (alone_) in_call_.store(false, std::memory_order_relaxed);
  }
  CallerGuard(const CallerGuard&) = delete;
  CallerGuard& operator=(const CallerGuard&) = delete;

  [[nodiscard]] bool alone() const { return alone_; }
  [[nodiscard]] static Status misuse() {
    return Status::error(Code::kInvalidArgument,
                         "another thread is in a call on this communicator; use one communicator per thread");
  }

 private:
  std::atomic<bool>& in_call_;
  bool alone_;
};

void Communicator::note_delegated(const char* what) {
  if (in_forked_child()) return;
  const ProgressLock lock(*this);  // another thread may be recording the completion of a request
  watch_->record().add_delegated(what);
}

void Communicator::take_back_delegated() {
  if (in_forked_child()) return;
  const ProgressLock lock(*this);
  watch_->record().take_back_delegated();
}

Status Communicator::execute(const CallArgs& args) {
  const CallerGuard guard(*this);
  if (!guard.alone()) return guard.misuse();
  const ProgressLock lock(*this);
  if (watch_->failed()) {
    failed_call_ = watch_->record().last().index + 1;
    return watch_->failure();
  }
  return run_recorded(args);
}

Status Communicator::run_recorded(const CallArgs& args) {
  CallRecord& record = watch_->record();
  const std::uint64_t index = record.begin(args);
  // A call with count 0 returns at once, but it is recorded like any other: a peer that passed another count must
  // not match its messages with this rank's next call.
  Status status = run_with_memory(args);
  if (!status.ok() && watch_->failed()) {
    status = watch_->failure();
    failed_call_ = index;
  }
  record.end(index);
  return status;
}

Status Communicator::run_with_memory(const CallArgs& args) {
  try {
    return backend_->run(args, *this);
  } catch (...) {
    // The peers are in the call and wait for this rank.
    return found_exception();
  }
}

Status Communicator::call(const CallArgs& args) {
  // Fast path: per-call overhead dominates small messages, so errors are described on the slow path only.
  if (in_forked_child()) return check_not_forked();
  const bool is_plain = are_valid(args, rank_, size_) && !is_user(args.op) && !is_bytes(args.type);
  return is_plain ? execute(args) : call_checked(args);
}

Status Communicator::check(const CallArgs& args) const {
  if (!are_valid(args, rank_, size_)) {
    if (Status status = check_arguments(args, rank_, size_); !status.ok()) return status;
  }
  return is_bytes(args.type) ? backend_->refuse(args) : Status::success();
}

Status Communicator::call_checked(const CallArgs& args) {
  if (Status status = check(args); !status.ok()) return status;
  const reduce::UserOpHold hold(args.op);
  return execute(args);
}

// ---- Requests ------------------------------------------------------------------------------------------

Result<std::unique_ptr<Request>> Communicator::prepare_request(const CallArgs& args) {
  if (Status status = check_not_forked(); !status.ok()) return fail(status);
  if (Status status = check(args); !status.ok()) return fail(status);
  auto request = std::make_unique<CallRequest>(*this, backend_->make_call());
  if (Status status = request->set(args); !status.ok()) return fail(status);
  return request;
}

Status Communicator::start(PendingCall& call, const CallArgs& args, std::uint64_t& index) {
  const CallerGuard guard(*this);
  if (!guard.alone()) return guard.misuse();
  const ProgressLock lock(*this);
  if (watch_->failed()) return watch_->failure();
  index = watch_->record().begin(args);
  try {
    call.start();
  } catch (...) {
    Status status = end_after_throw(call);
    watch_->record().end(index);
    return watch_->failed() ? watch_->failure() : status;
  }
  // From here on other threads may make progress on the call, and this thread needs the lock.
  num_outstanding_.store(num_outstanding_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  // With one rank, the call is already complete.
  if (size_ > 1 && !std::exchange(makes_requests_, true)) OutstandingCalls::process().add(*this);
  if (has_progress_thread_) ProgressThread::process().wake();
  return Status::success();
}

void Communicator::check_missing(PendingCall& call, Polls& polls) {
  constexpr std::uint64_t kPollsPerCheck = 16;  // polls between two readings of the clock
  if (++polls.num % kPollsPerCheck != 0) return;
  const std::int64_t now_ns = backend_->clock().now_ns();
  if (polls.num == kPollsPerCheck) polls = {.num = kPollsPerCheck, .begin_ns = now_ns};
  const std::int64_t waited_ns = now_ns - polls.begin_ns;
  if (waited_ns < polls.next_check_ns) return;
  polls.next_check_ns = waited_ns + kCheckEveryNs;
  call.while_still([&] { check_missing(call, polls.wait_limits, waited_ns); });
}

bool Communicator::has_ended(const PendingCall& call) {
  if (mode_ == ThreadMode::kSingle && !has_progress_thread_)
    return call.done();  // no other thread makes progress
  const ProgressLock lock(*this);
  return call.done();
}

std::optional<Status> Communicator::test(PendingCall& call, std::uint64_t index, Polls& polls) {
  const ProgressLock lock(*this);
  OutstandingCalls::process().advance_others(*this);
  std::optional<Status> end = call.test();
  if (end) {
    close(*end, index);
  } else {
    check_missing(call, polls);
  }
  return end;
}

Status Communicator::finish(PendingCall& call, std::uint64_t index) {
  const ProgressLock lock(*this);
  // A small call is often complete by now; that saves setting up the wait.
  try {
    backend_->advance();
  } catch (...) {
    (void)found_exception();
  }
  Status status = call.done() ? call.wait({}) : wait(call);
  close(status, index);
  return status;
}

void Communicator::close(Status& status, std::uint64_t index) {
  watch_->record().end(index);
  num_outstanding_.store(num_outstanding_.load(std::memory_order_relaxed) - 1, std::memory_order_release);
  if (status.ok()) return;
  if (watch_->failed())
    status = watch_->failure();
  else
    watch_->found(status);  // a failure of this rank alone, such as no memory
}

// It travels in a control frame, which has a limit of its own.
constexpr std::size_t kMostTextBytes = 4096;

Status aborted_by(Rank rank, std::string_view text) {
  Status status =
      Status::error(Code::kAborted,
                    fmt::format("rank {} aborted the communicator: {}", rank, text.substr(0, kMostTextBytes)),
                    Scope::kCommunicator);
  status.rank = rank;
  return status;
}

Status Communicator::abort(std::string_view text) {
  Status failed = fail_all(aborted_by(rank_, text));
  return watch_->failed() ? Status::success() : failed;
}

Status Communicator::fail_all(Status status) {
  if (Status forked = check_not_forked(); !forked.ok()) return forked;
  // Who is lost the control plane finds out by itself.
  if (status.code == Code::kPeerLost) status = aborted_by(rank_, status.message);
  status.scope = Scope::kCommunicator;
  status.rank = rank_;
  if (status.message.size() > kMostTextBytes) status.message.resize(kMostTextBytes);
  watch_->found(status);
  // The first failure is everybody's, which the lowest rank decides. Without an answer from it this rank
  // fails alone, after two seconds.
  constexpr std::int64_t kMostNs = 5'000'000'000;
  const std::int64_t end_ns = SystemClock::instance().now_ns() + kMostNs;
  while (!watch_->failed()) {
    if (SystemClock::instance().now_ns() >= end_ns)
      return Status::error(Code::kInternal, "abort: the control thread did not answer within 5 s");
    const timespec nap{0, 100'000};
    nanosleep(&nap, nullptr);
  }
  return watch_->failure();
}

Result<std::vector<std::optional<Blob>>> Communicator::gather_left(std::span<const std::byte> mine) {
  if (Status status = check_not_forked(); !status.ok()) return fail(std::move(status));
  const CallerGuard guard(*this);
  if (!guard.alone()) return fail(guard.misuse());
  if (size_ == 1) return std::vector<std::optional<Blob>>{Blob(mine.begin(), mine.end())};
  const std::uint64_t round = ++num_gathers_;
  while (true) {
    try {
      // Others may wait for this rank elsewhere first.
      return watch_->gather(round, mine, timeout_ns_, [this] {
        if (progress_) progress_();
        OutstandingCalls::process().advance_others(*this);
      });
    } catch (const std::bad_alloc&) {
      // The others count on this round. Memory may be short for a moment only.
      const timespec nap{0, 10'000'000};
      nanosleep(&nap, nullptr);
    }
  }
}

bool Communicator::retire() {
  if (num_gathers_ != 0 || digest_ == 0 || in_forked_child() || watch_->failed()) return false;
  if (num_outstanding_.load(std::memory_order_acquire) > 0) return false;
  if (std::exchange(makes_requests_, false)) OutstandingCalls::process().remove(*this);
  watch_->retire();
  return true;
}

std::optional<SpareNote> Communicator::spare_note() const {
  if (!watch_->is_retired() || watch_->failed()) return std::nullopt;
  return SpareNote{digest_, watch_->id(), watch_->record().last().index};
}

void Communicator::advance_if_free() {
  if (num_outstanding_.load(std::memory_order_acquire) == 0) return;
  if (progressing_.exchange(true, std::memory_order_acquire)) return;
  struct Release {
    std::atomic<bool>& progressing;
    ~Release() { progressing.store(false, std::memory_order_release); }
  } const release{progressing_};
  // Checked again under the lock: without outstanding requests, calls take no lock.
  if (num_outstanding_.load(std::memory_order_acquire) == 0) return;
  try {
    backend_->advance();
  } catch (...) {
    (void)found_exception();  // it is this communicator's, and not that of the call that waits
  }
}

}  // namespace hips::comm
