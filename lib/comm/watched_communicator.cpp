#include "lib/comm/watched_communicator.hpp"

#include <sched.h>

#include <algorithm>
#include <ctime>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "lib/base/log.hpp"
#include "lib/comm/calls/in_flight.hpp"
#include "lib/comm/calls/watched_request.hpp"
#include "lib/comm/control/patience.hpp"
#include "lib/comm/fork_guard.hpp"
#include "lib/comm/process.hpp"
#include "lib/comm/progress_thread.hpp"
#include "lib/comm/setup/agreement.hpp"
#include "lib/reduce/user_op.hpp"

namespace hips::comm {
namespace {

using log::Subsystem;

constexpr std::int64_t kLookEveryNs = 200'000'000;
/// What the control threads of all ranks take to answer, when all goes well.
constexpr std::int64_t kAnswersNs = 200'000'000;
constexpr std::int64_t kProgressEveryNs = 1'000'000;
/// How long a thread that waits keeps others from their requests of the same communicator: longer where none
/// came lately.
constexpr std::int64_t kTurnNs = 1'000'000, kLongestTurnNs = 16'000'000;

/// How a call has ended whose wait gave `status`: where that is a deadline, another thread may have ended the
/// call since, and no deadline passed for it.
Status outcome(PendingCall& call, Status status) {
  return status.code == Code::kTimeout ? call.wait({}) : status;
}

}  // namespace

WatchedCommunicator::WatchedCommunicator(Bootstrap& bootstrap, const Config& config,
                                         const CommunicatorOptions& options)
    : progress_(options.progress ? options.progress : bootstrap.progress()),
      timeout_ns_(config.timeout_ns.value_or(INT64_MAX)),
      dead_after_ns_(config.dead_after_ns),
      rank_(bootstrap.rank()),
      size_(bootstrap.size()),
      mode_(options.thread_mode),
      has_progress_thread_(config.progress_thread.value_or(options.progress_thread)) {}

Status WatchedCommunicator::set_up(Bootstrap& bootstrap, const Config& config, const Design& design,
                                   const std::vector<ProcessInfo>& processes, std::uint64_t id) {
  const auto exchange = [&](const Status& mine, const Blob& blob) -> Result<std::vector<Blob>> {
    ByteWriter writer;
    writer.put_status(mine);
    writer.put_bytes(blob);
    auto all = bootstrap.allgather(writer.blob());
    if (!all) return all;
    std::vector<Status> statuses;
    for (Blob& one : *all) {
      ByteReader reader(one);
      statuses.push_back(reader.get_status());
      const auto bytes = reader.get_bytes();
      Blob content(bytes.begin(), bytes.end());
      one = std::move(content);
    }
    if (Status status = first_failure(statuses); !status.ok()) return fail(std::move(status));
    return all;
  };

  // Phase 1: memory and endpoints of this rank's own, and an address for the control plane.
  auto made = make(design, processes, id);
  Status status = made ? Status::success() : made.error();
  ByteWriter offer;
  std::vector<ProcessInfo> members = processes;
  auto control = process_control(config.job_token, config.dead_after_ns);
  if (status.ok() && !control) status = control.error();
  if (status.ok()) {
    auto address =
        (*control)->listen(all_on_one_host(processes) ? Control::Reach::kHost : Control::Reach::kNetwork);
    if (address) {
      put_control_address(offer, *address);
      offer.put_bytes(*made);
    } else {
      status = address.error();
    }
  }
  auto offers = exchange(status, offer.blob());
  if (!offers) return offers.error();
  std::vector<Blob> offers_made;
  for (std::size_t r = 0; r < offers->size(); ++r) {
    ByteReader reader((*offers)[r]);
    members[r].control = get_control_address(reader);
    const auto bytes = reader.get_bytes();
    offers_made.emplace_back(bytes.begin(), bytes.end());
  }

  // Phase 2: from here on the control plane watches, and staging is laid out.
  watch_->start(**control, verdicts(), id, rank_, std::move(members));
  auto address = allocate(offers_made);
  auto addresses = exchange(address ? Status::success() : address.error(), address ? *address : Blob());
  if (!addresses) return addresses.error();

  // Phase 3: endpoints.
  status = connect(*addresses);
  if (status.ok()) status = watch_->failure();
  return agree(bootstrap, status);
}

/// What a blocking call does while it waits.
struct WatchedCommunicator::Waiter {
  WatchedCommunicator& communicator;
  const PendingCall& call;
  Patience patience;
  std::int64_t before_ns = 0;  ///< waited before this turn
  std::int64_t next_look_ns = kLookEveryNs;

  void tick(std::int64_t in_turn_ns) {
    const std::int64_t waited_ns = before_ns + in_turn_ns;
    if (communicator.progress_) communicator.progress_();
    InFlight::process().advance_others(communicator);
    // The caller's runtime wants to move more often than we need to look.
    if (waited_ns < next_look_ns) return;
    next_look_ns = waited_ns + kLookEveryNs;
    communicator.look_after(call, patience, waited_ns);
  }
};

void WatchedCommunicator::look_after(const PendingCall& call, Patience& patience, std::int64_t waited_ns) {
  const std::vector<Rank> lacking = call.waiting_for();
  watch_->waiting(lacking, call.waiting_text());
  const Patience::Actions actions = patience.at(waited_ns);
  if (actions.ask) watch_->ask(lacking);
  if (actions.ask_all) watch_->ask_all();
  if (actions.warn)
    log::warn(Subsystem::kComm, "{} has waited {} s: {}", to_string(watch_->record().current()),
              waited_ns / 1'000'000'000, watch_->missing());
}

Status WatchedCommunicator::wait(PendingCall& call) {
  Waiter waiter{*this, call, {}};
  WaitOptions options;
  const bool moves_others = progress_ || InFlight::process().has_others(*this);
  options.tick_ns = moves_others ? kProgressEveryNs : kLookEveryNs;
  // One pointer: the function then needs no memory of its own.
  options.on_tick = [&waiter](std::int64_t waited_ns) { waiter.tick(waited_ns); };
  if (timeout_ns_ != INT64_MAX) options.deadline_ns = clock().now_ns() + timeout_ns_;
  Status status = wait_in_turns(call, options, waiter);
  if (call.done()) return outcome(call, std::move(status));

  // The user's deadline. Who is missing is worth a short moment more; it may even save the call.
  watch_->ask_all();
  options.deadline_ns = clock().now_ns() + kAnswersNs;
  if (Status late = wait_in_turns(call, options, waiter); call.done()) return outcome(call, std::move(late));

  // The buffers belong to the operation until it has ended, and it ends for all ranks.
  status.scope = Scope::kCommunicator;
  status.message = fmt::format("rank {} gave up {} after {:g} s (HIPS_TIMEOUT): {}", rank_,
                               to_string(watch_->record().current()), static_cast<double>(timeout_ns_) / 1e9,
                               watch_->missing());
  watch_->found(status);
  options.deadline_ns = INT64_MAX;
  return wait_in_turns(call, options, waiter);
}

Status WatchedCommunicator::wait_in_turns(PendingCall& call, WaitOptions options, Waiter& waiter) {
  // As Moving decides: without requests, or with one thread, nobody else wants to move anything.
  if (mode_ == ThreadMode::kSingle || num_under_way_.load(std::memory_order_relaxed) == 0)
    return call.wait(options);
  const std::int64_t deadline_ns = options.deadline_ns, before_ns = waiter.before_ns;
  std::int64_t now_ns = clock().now_ns();
  const std::int64_t begin_ns = now_ns;
  for (std::int64_t turn_ns = kTurnNs;;) {
    options.deadline_ns = std::min(deadline_ns, now_ns + turn_ns);
    Status status = call.wait(options);
    if (call.done()) return outcome(call, std::move(status));
    now_ns = clock().now_ns();
    if (now_ns >= deadline_ns) return status;
    waiter.before_ns = before_ns + now_ns - begin_ns;
    waiter.tick(0);
    turn_ns = make_way() ? kTurnNs : std::min(2 * turn_ns, kLongestTurnNs);
  }
}

bool WatchedCommunicator::make_way() {
  constexpr int kMostYields = 100;  // somebody who wants it may have been put to sleep
  const int num_wanting = num_wanting_.load(std::memory_order_relaxed);
  if (num_wanting == 0) return false;
  moving_.store(false, std::memory_order_release);
  for (int i = 0; i < kMostYields && num_wanting_.load(std::memory_order_relaxed) >= num_wanting; ++i)
    sched_yield();
  while (moving_.exchange(true, std::memory_order_acquire)) sched_yield();
  return true;
}

/// This thread and no other moves the communicator's calls. Who waits for long makes way for others now and
/// then: what they have may have ended, and the call that is waited for may need that they know.
///
/// Where no request is under way the calls of others are nobody else's business, so nothing is locked. Where
/// there is one thread the flag is for what it calls while it waits, and costs a store.
class WatchedCommunicator::Moving {
 public:
  explicit Moving(WatchedCommunicator& communicator)
      : flag_(communicator.moving_),
        locked_(communicator.num_under_way_.load(std::memory_order_relaxed) > 0) {
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
  ~Moving() {
    if (locked_) flag_.store(false, std::memory_order_release);
  }
  Moving(const Moving&) = delete;
  Moving& operator=(const Moving&) = delete;

 private:
  std::atomic<bool>& flag_;
  bool locked_;
};

/// A thread is starting a call.
class WatchedCommunicator::Starting {
 public:
  // Finds most misuse at the price of two plain stores; who needs certainty asks a thread sanitizer.
  explicit Starting(WatchedCommunicator& communicator)
      : in_call_(communicator.in_call_),
        alone_(communicator.mode_ != ThreadMode::kSerialized || !in_call_.load(std::memory_order_relaxed)) {
    if (alone_) in_call_.store(true, std::memory_order_relaxed);
  }
  ~Starting() {
    if (alone_) in_call_.store(false, std::memory_order_relaxed);
  }
  Starting(const Starting&) = delete;
  Starting& operator=(const Starting&) = delete;

  [[nodiscard]] bool alone() const { return alone_; }
  [[nodiscard]] static Status misuse() {
    return Status::error(Code::kInvalidArgument,
                         "another thread is in a call on this communicator; use one communicator for each "
                         "thread");
  }

 private:
  std::atomic<bool>& in_call_;
  bool alone_;
};

void WatchedCommunicator::note_declined(const char* what) {
  if (in_forked_child()) return;
  const Moving moving(*this);  // a request of another thread may be ending, which is noted, too
  watch_->record().decline(what);
}

Status WatchedCommunicator::carry_out(const CallArgs& args) {
  const Starting starting(*this);
  if (!starting.alone()) return starting.misuse();
  const Moving moving(*this);
  if (watch_->failed()) return watch_->failure();
  return run_recorded(args);
}

Status WatchedCommunicator::run_recorded(const CallArgs& args) {
  CallRecord& record = watch_->record();
  const std::uint64_t index = record.begin(args);
  // A count of 0 ends at once, but it is a call like others: a peer that passed another count must not pair
  // its messages with those of our next call.
  Status status = run_with_memory(args);
  if (!status.ok() && watch_->failed()) status = watch_->failure();
  record.end(index);
  return status;
}

Status WatchedCommunicator::run_with_memory(const CallArgs& args) {
  try {
    return run(args);
  } catch (const std::bad_alloc&) {
    // The others are in the call, and wait for this rank.
    Status status = Status::error(
        Code::kOutOfMemory,
        fmt::format("rank {} has no memory for {}", rank_, to_string(watch_->record().current())),
        Scope::kCommunicator);
    watch_->found(status);
    return status;
  }
}

Status WatchedCommunicator::call(const CallArgs& args) {
  // Questions first, answers in words only where one is no: a small call is short.
  if (in_forked_child()) return check_not_forked();
  if (!plainly_right(args)) return call_checked(args);
  return carry_out(args);
}

Status WatchedCommunicator::check(const CallArgs& args) const {
  Status status = check_arguments(args, rank_, size_);
  return status.ok() && is_bytes(args.type) ? refuse(args) : status;
}

Status WatchedCommunicator::call_checked(const CallArgs& args) {
  if (Status status = check(args); !status.ok()) return status;
  const reduce::UserOpHold hold(args.op);
  return carry_out(args);
}

// ---- Requests ------------------------------------------------------------------------------------------

Result<std::unique_ptr<Request>> WatchedCommunicator::prepare_request(const CallArgs& args) {
  if (Status status = check_not_forked(); !status.ok()) return fail(status);
  if (Status status = check(args); !status.ok()) return fail(status);
  auto request = std::make_unique<WatchedRequest>(*this, make_call());
  if (Status status = request->set(args); !status.ok()) return fail(status);
  return request;
}

Status WatchedCommunicator::start(PendingCall& call, const CallArgs& args, std::uint64_t& index) {
  const Starting starting(*this);
  if (!starting.alone()) return starting.misuse();
  const Moving moving(*this);
  if (watch_->failed()) return watch_->failure();
  index = watch_->record().begin(args);
  call.start();
  // From here on others may move it, and this thread no longer does without the lock.
  num_under_way_.store(num_under_way_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  if (!std::exchange(makes_requests_, true)) InFlight::process().add(*this);
  if (has_progress_thread_) ProgressThread::process().wake();
  return Status::success();
}

void WatchedCommunicator::look_after(PendingCall& call, Polls& polls) {
  constexpr std::uint64_t kPollsPerLook = 16;  // between two looks at the clock
  if (++polls.num % kPollsPerLook != 0) return;
  const std::int64_t now_ns = clock().now_ns();
  if (polls.num == kPollsPerLook) polls = {.num = kPollsPerLook, .begin_ns = now_ns};
  const std::int64_t waited_ns = now_ns - polls.begin_ns;
  if (waited_ns < polls.next_look_ns) return;
  polls.next_look_ns = waited_ns + kLookEveryNs;
  call.while_still([&] { look_after(call, polls.patience, waited_ns); });
}

bool WatchedCommunicator::has_ended(const PendingCall& call) {
  if (mode_ == ThreadMode::kSingle && !has_progress_thread_) return call.done();  // nobody else moves it
  const Moving moving(*this);
  return call.done();
}

std::optional<Status> WatchedCommunicator::test(PendingCall& call, std::uint64_t index, Polls& polls) {
  const Moving moving(*this);
  InFlight::process().advance_others(*this);
  std::optional<Status> end = call.test();
  if (end) {
    close(*end, index);
  } else {
    look_after(call, polls);
  }
  return end;
}

Status WatchedCommunicator::finish(PendingCall& call, std::uint64_t index) {
  const Moving moving(*this);
  // A small call has often ended since its start; then nothing of what waiting takes is set up.
  advance();
  Status status = call.done() ? call.wait({}) : wait(call);
  close(status, index);
  return status;
}

void WatchedCommunicator::close(Status& status, std::uint64_t index) {
  watch_->record().end(index);
  num_under_way_.store(num_under_way_.load(std::memory_order_relaxed) - 1, std::memory_order_release);
  if (!status.ok() && watch_->failed()) status = watch_->failure();
}

Status WatchedCommunicator::abort(std::string_view text) {
  if (Status status = check_not_forked(); !status.ok()) return status;
  watch_->found(aborted_by(rank_, text));
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
  return Status::success();
}

void WatchedCommunicator::leave() {
  if (makes_requests_) InFlight::process().remove(*this);
  watch_->leave();
}

void WatchedCommunicator::advance_if_free() {
  if (num_under_way_.load(std::memory_order_acquire) == 0) return;
  if (moving_.exchange(true, std::memory_order_acquire)) return;
  // Looked at again: where nothing is under way, calls take no lock.
  if (num_under_way_.load(std::memory_order_acquire) > 0) advance();
  moving_.store(false, std::memory_order_release);
}

}  // namespace hips::comm
