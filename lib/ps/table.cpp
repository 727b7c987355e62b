#include "lib/ps/table.hpp"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <ctime>
#include <new>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "lib/base/wait/clock.hpp"
#include "lib/base/wait/waiter.hpp"
#include "lib/comm/calls/outstanding_calls.hpp"
#include "lib/comm/setup/bootstrap.hpp"
#include "lib/comm/setup/member_exchange.hpp"
#include "lib/ps/table_setup.hpp"

namespace hips::ps {
namespace {

/// Records of a rank that may be outstanding; a rank that asks faster than others answer waits.
constexpr std::uint64_t kMostOutstanding = 1U << 16U;
constexpr std::uint32_t kStartsPerLook = 64;
constexpr std::int64_t kGraceNs = 1'000'000'000;
constexpr std::int64_t kShortNapNs = 50'000;  ///< where collectives are outstanding, too
constexpr std::int64_t kNapNs = 50'000'000;   ///< of a sleeping waiter, between two looks for a failure

}  // namespace

RowTable::RowTable(comm::Communicator& members, RowTableOptions options)
    : members_(members), options_(std::move(options)) {}

Result<std::unique_ptr<RowTable>> RowTable::create(comm::Communicator& members, RowTableOptions options) {
  std::unique_ptr<RowTable> table(new RowTable(members, std::move(options)));
  if (Status status = table->set_up(); !status.ok()) return fail(std::move(status));
  return table;
}

Status RowTable::set_up() {
  comm::MemberExchange exchange(members_);
  auto parts = set_up_table(members_, options_, [this](Rank /*from*/, std::span<const std::byte> batches) {
    return receive(batches);
  });
  if (!parts) return parts.error();
  places_ = std::move(parts->places);
  store_ = std::move(parts->store);
  replicas_ = std::move(parts->replicas);
  mail_ = std::move(parts->mail);
  waits_ = std::make_unique<WaitPolicy>(parts->spin);
  if (Status status = comm::agree(exchange, begin_to_serve()); !status.ok()) return status;
  // A connection may need both ends to poll until it is ready, and ranks need not call for long.
  const std::size_t num_peers = mail_->num_peers();
  if (Status status = send([&] { mail_->greet_all(); }); !status.ok()) return status;
  const auto is_connected = [&] {
    return num_greeted_.load(std::memory_order_acquire) == num_peers && !mail_->has_unsent();
  };
  wait_until(is_connected, "the connections of all ranks");
  return is_connected() ? Status::success() : failure();
}

/// Local; afterwards this rank can call and be called.
Status RowTable::begin_to_serve() {
  const auto given_up = [this] { return !members_.failure().ok(); };
  store_->set_given_up(given_up);
  if (replicas_) replicas_->set_given_up(given_up);
  const Rank rank = members_.rank();
  const std::int32_t node = places_.node_of[static_cast<std::size_t>(rank)];
  client_ = std::make_unique<Client>(rank, places_, options_.type, *store_, *mail_, replicas_.get());
  wake_fd_.reset(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!wake_fd_.valid())
    return Status::error(Code::kSystem, "table: cannot create an eventfd; see \"ulimit -n\"");
  if (places_.service_of[static_cast<std::size_t>(node)] != rank) return Status::success();
  service_ = std::make_unique<Service>(
      Service::Options{
          .node = node, .places = places_, .type = options_.type, .first_row = options_.first_row},
      *store_, *mail_, replicas_.get());
  // Signals are for threads of the program.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Status status;
  try {
    thread_ = std::thread([this] { serve(); });
  } catch (const std::system_error& error) {
    status = Status::error(Code::kSystem, fmt::format("table: cannot start a thread: {}", error.what()));
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return status;
}

RowTable::~RowTable() {
  stops_.store(true, std::memory_order_seq_cst);
  wake();
  {
    const std::lock_guard lock(mutex_);
    nobody_waits_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

Status RowTable::check_keys(std::span<const Key> keys) const {
  for (const Key key : keys)
    if (key >= options_.num_keys)
      return Status::error(Code::kInvalidArgument,
                           fmt::format("table: key {} is out of range [0, {})", key, options_.num_keys));
  return Status::success();
}

/// Uses each key's row; fetches what the next ones need meanwhile. False: the table has failed.
template <typename Use>
bool RowTable::use_local(std::span<const Key> keys, Use&& use) {
  constexpr std::size_t kBlock = 16;
  std::array<std::uint64_t, kBlock> hashes;
  for (std::size_t begin = 0; begin < keys.size(); begin += kBlock) {
    const std::size_t num = std::min(kBlock, keys.size() - begin);
    for (std::size_t i = 0; i < num; ++i) {
      hashes[i] = mixed(keys[begin + i]);
      if (num > 1) store_->prefetch(hashes[i]);
    }
    for (std::size_t i = 0; i < num; ++i) {
      if (use(begin + i, hashes[i]) != Found::kLatchLost) continue;
      (void)look_for_failure();
      return false;
    }
  }
  return true;
}

Status RowTable::begin_call(std::span<const Key> keys) {
  // A rank whose rows are all here sends nothing, and hears of a failure from nobody else.
  const std::uint32_t starts = num_starts_.load(std::memory_order_relaxed) + 1;
  num_starts_.store(starts, std::memory_order_relaxed);
  if (starts % kStartsPerLook == 0) (void)look_for_failure();
  if (failed_.load(std::memory_order_acquire)) return failure();
  return check_keys(keys);
}

Status RowTable::start(std::unique_ptr<TableCall>& call, MailKind kind, std::span<const Key> keys,
                       const std::byte* given, std::byte* out) {
  if (Status status = begin_call(keys); !status.ok()) return status;
  const std::size_t given_bytes = given != nullptr ? options_.type.bytes() : 0;
  const std::size_t out_bytes = out != nullptr ? options_.type.bytes() : 0;
  std::vector<std::uint32_t> remote;
  const bool used = use_local(keys, [&](std::size_t i, std::uint64_t hash) {
    const Found found = client_->use(kind, keys[i], hash, given + i * given_bytes, out + i * out_bytes);
    if (found == Found::kAbsent) remote.push_back(static_cast<std::uint32_t>(i));
    return found;
  });
  if (!used) return failure();
  if (remote.empty()) return Status::success();
  auto made = std::make_unique<TableCall>();
  made->kind = kind;
  made->out = out;
  made->num_keys = keys.size();
  Status status = ask(*made, keys, remote, given);
  if (status.ok()) call = std::move(made);
  return status;
}

Status RowTable::ask(TableCall& call, std::span<const Key> keys, std::span<const std::uint32_t> positions,
                     const std::byte* given) {
  if (client_->num_outstanding() > kMostOutstanding)
    wait_until([&] { return client_->num_outstanding() <= kMostOutstanding; }, "answers to earlier calls");
  return send([&] { client_->ask(call, keys, positions, given); });
}

/// Lets the client write mail, and sends it. The failure of the table, where the client did not.
template <typename Write>
Status RowTable::send(Write&& write) {
  Status status;
  {
    const std::lock_guard lock(mutex_);
    status = failure_;
    if (status.ok()) try {
        write();
        if (Status sent = mail_->send_and_take_own(); !sent.ok()) fail_locked(sent);
      } catch (const std::bad_alloc&) {
        fail_locked(Status::error(Code::kOutOfMemory, "table: no memory to go on"));
      }
  }
  tell_others();
  return status;
}

Status RowTable::pull_if_local(std::span<const Key> keys, std::byte* out, unsigned char* here) {
  if (Status status = begin_call(keys); !status.ok()) return status;
  if (mail_->has_unsent()) (void)step();
  bool lacks = false;
  const bool used = use_local(keys, [&](std::size_t i, std::uint64_t hash) {
    const Found found =
        client_->use(MailKind::kPull, keys[i], hash, nullptr, out + i * options_.type.bytes());
    here[i] = found == Found::kHere ? 1 : 0;
    lacks = lacks || here[i] == 0;
    return found;
  });
  // A program that asks until a row has come must not keep the service from its core.
  if (lacks) (void)step();
  return used ? Status::success() : failure();
}

/// A frame's batches, to the service of the node or to this rank's calls.
Status RowTable::receive(std::span<const std::byte> batches) {
  const std::size_t row_bytes = options_.type.bytes();
  while (!batches.empty()) {
    const auto batch = Batch::take(batches, row_bytes);
    if (!batch) return batch.error();
    if (batch->head().kind == MailKind::kGreeting) {
      num_greeted_.fetch_add(1, std::memory_order_release);
      continue;
    }
    const bool answers = is_answer(batch->head().kind);
    if (!answers && !service_)
      return Status::error(Code::kInternal, "table: a request reached a rank that does not serve",
                           Scope::kCommunicator);
    if (Status status = answers ? client_->on_mail(*batch) : service_->on_mail(*batch); !status.ok())
      return status;
  }
  return Status::success();
}

bool RowTable::step_locked() {
  if (!failure_.ok()) return false;
  try {
    auto moved = mail_->progress();
    if (moved) return *moved;
    // A latch is given up because the communicator has failed, which names who died.
    const Status known = members_.failure();
    fail_locked(known.ok() ? moved.error() : known);
  } catch (const std::bad_alloc&) {
    fail_locked(Status::error(Code::kOutOfMemory, "table: no memory to go on"));
  }
  return true;
}

bool RowTable::step() {
  bool moved = false;
  {
    const std::lock_guard lock(mutex_);
    moved = step_locked();
  }
  tell_others();
  return moved;
}

void RowTable::fail_locked(const Status& status) {
  if (!failure_.ok() || stops_.load(std::memory_order_acquire)) return;
  failure_ = status;
  tells_.store(true, std::memory_order_relaxed);
  failed_.store(true, std::memory_order_release);
}

/// Ranks that wait for this one end, too: the communicator has failed. Without the lock.
void RowTable::tell_others() {
  if (!tells_.load(std::memory_order_relaxed) || !tells_.exchange(false, std::memory_order_relaxed)) return;
  if (members_.failure().ok()) (void)members_.abort(failure().message);
}

/// The communicator knows who died. Where a connection broke it gets time to find out: the peer may live, and have left because
/// it knew sooner.
bool RowTable::look_for_failure() {
  const Status status = members_.failure();
  {
    const std::lock_guard lock(mutex_);
    if (!status.ok()) fail_locked(status);
    const Status lost = leaves_ ? Status::success() : mail_->lost();
    if (lost.ok()) lost_since_ns_ = 0;
    if (failure_.ok() && !lost.ok()) {
      const std::int64_t now_ns = SystemClock::instance().now_ns();
      if (lost_since_ns_ == 0) lost_since_ns_ = now_ns;
      if (now_ns - lost_since_ns_ > members_.abandon_after_ns() + kGraceNs) fail_locked(lost);
    }
  }
  tell_others();
  return failed_.load(std::memory_order_acquire);
}

Status RowTable::failure() {
  const std::lock_guard lock(mutex_);
  return failure_;
}

bool RowTable::test(const TableCall& call) {
  if (call.done.load(std::memory_order_acquire)) return true;
  comm::OutstandingCalls::process().advance_all();
  if (!step()) (void)look_for_failure();
  return call.done.load(std::memory_order_acquire) || failed_.load(std::memory_order_acquire);
}

/// While it exists a thread of the program makes progress, and the service's thread need not.
class RowTable::Waiting {
 public:
  explicit Waiting(RowTable& table) : table_(table) {
    table_.num_waiting_.fetch_add(1, std::memory_order_seq_cst);
  }
  ~Waiting() {
    const bool last = table_.num_waiting_.fetch_sub(1, std::memory_order_seq_cst) == 1;
    if (!last || !table_.parked_.load(std::memory_order_seq_cst)) return;
    const std::lock_guard lock(table_.mutex_);
    table_.nobody_waits_.notify_one();
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  RowTable& table_;
};

template <typename IsDone>
void RowTable::wait_until(IsDone&& is_done, const char* what) {
  if (is_done()) return;
  const Waiting waiting(*this);
  Clock& clock = SystemClock::instance();
  const std::int64_t limit_ns = members_.timeout_ns();
  const std::int64_t begin_ns = limit_ns == INT64_MAX ? 0 : clock.now_ns();
  Waiter waiter(*waits_, WaitKind::kPlan, clock);
  auto& collectives = comm::OutstandingCalls::process();
  const auto& progress = members_.origin().options.progress;
  constexpr int kRoundsPerLook = 1024;
  for (int round = 1; !is_done() && !failed_.load(std::memory_order_acquire); ++round) {
    bool looks = round % kRoundsPerLook == 0;
    // A peer may wait for a collective that this rank has started.
    const bool others = collectives.any_outstanding();
    if (others) collectives.advance_all();
    if (step()) {
      waiter.moved();
    } else if (!waiter.stay_awake()) {
      sleep(others ? kShortNapNs : kNapNs);
      looks = true;
    }
    if (!looks) continue;
    (void)look_for_failure();
    if (progress) progress();
    if (limit_ns != INT64_MAX && clock.now_ns() - begin_ns > limit_ns) time_out(what, limit_ns);
  }
}

Status RowTable::wait(std::unique_ptr<TableCall> call) {
  const auto is_done = [&] { return call->done.load(std::memory_order_acquire); };
  wait_until(is_done, "the rows of a call");
  if (is_done()) return Status::success();
  // The client still knows of it; nothing is written to the caller's memory any more.
  const std::lock_guard lock(mutex_);
  call->out = nullptr;
  unanswered_.push_back(std::move(call));
  return failure_;
}

Status RowTable::intent(std::span<const Key> keys, std::uint64_t start, std::uint64_t end) {
  if (Status status = begin_call(keys); !status.ok()) return status;
  if (end < start)
    return Status::error(
        Code::kInvalidArgument,
        fmt::format("table: an intent ends at clock {}, before it starts at {}", end, start));
  return send([&] { client_->tell_intent(keys, start, end); });
}

Status RowTable::advance_clock() {
  if (failed_.load(std::memory_order_acquire)) return failure();
  // What this rank has pushed is there before the others hear of the clock.
  const auto is_quiet = [&] { return client_->num_outstanding() == 0; };
  wait_until(is_quiet, "the outstanding calls before a clock");
  if (!is_quiet()) return failure();
  if (Status status = send([&] { client_->tell_clock(++clock_); }); !status.ok()) return status;
  // Others may wait for this clock while this rank makes no call, so it has to be on its way.
  (void)step();
  const auto is_near = [&] {
    const std::uint64_t all = client_->all_clocks();
    return (all >= clock_ || clock_ - all <= options_.staleness) && !mail_->has_unsent();
  };
  wait_until(is_near, "the clocks of slower ranks");
  return is_near() ? Status::success() : failure();
}

void RowTable::time_out(const char* what, std::int64_t limit_ns) {
  {
    const std::lock_guard lock(mutex_);
    fail_locked(Status::error(Code::kTimeout, fmt::format("table: {} did not come within {} s", what,
                                                          static_cast<double>(limit_ns) / 1e9)));
  }
  tell_others();
}

/// Sleeps until there is mail. Several threads may, on what the first of them has armed.
void RowTable::sleep(std::int64_t most_ns) {
  std::vector<pollfd> fds;
  {
    const std::lock_guard lock(mutex_);
    if (num_sleepers_ == 0) {
      armed_fds_.assign(1, {wake_fd_.get(), POLLIN, 0});
      const bool quiet = mail_->arm(armed_fds_);
      if (!quiet || step_locked() || !failure_.ok()) {
        mail_->disarm();
        return;
      }
    } else if (step_locked() || !failure_.ok()) {
      return;
    }
    ++num_sleepers_;
    fds = armed_fds_;
  }
  const timespec limit{most_ns / 1'000'000'000, static_cast<long>(most_ns % 1'000'000'000)};
  (void)ppoll(fds.data(), fds.size(), &limit, nullptr);
  const std::lock_guard lock(mutex_);
  if (--num_sleepers_ == 0) mail_->disarm();
}

/// The service's thread.
void RowTable::serve() {
  // More mail often follows at once. The program may want the core, so the policy learns.
  WaitPolicy brief({.spin_polls = 100, .yield_polls = 20});
  Waiter waiter(brief, WaitKind::kPlan, SystemClock::instance());
  while (!stops_.load(std::memory_order_acquire)) {
    if (num_waiting_.load(std::memory_order_seq_cst) > 0) {
      std::unique_lock lock(mutex_);
      parked_.store(true, std::memory_order_seq_cst);
      nobody_waits_.wait(lock, [&] {
        return num_waiting_.load(std::memory_order_seq_cst) == 0 || stops_.load(std::memory_order_acquire);
      });
      parked_.store(false, std::memory_order_seq_cst);
      continue;
    }
    if (failed_.load(std::memory_order_acquire)) return tell_others();
    if (step()) {
      waiter.moved();
    } else if (!waiter.stay_awake()) {
      sleep(1'000'000'000);
      (void)look_for_failure();
    }
  }
}

void RowTable::wake() const {
  const std::uint64_t one = 1;
  if (wake_fd_.valid()) (void)!::write(wake_fd_.get(), &one, sizeof one);
}

Status RowTable::leave() {
  {
    // Ranks that are through close their connections.
    const std::lock_guard lock(mutex_);
    leaves_ = true;
  }
  return members_.call({.collective = Collective::kBarrier});
}

}  // namespace hips::ps
