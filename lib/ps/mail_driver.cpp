#include "lib/ps/mail_driver.hpp"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace hips::ps {
namespace {

constexpr std::int64_t kGraceNs = 1'000'000'000;

/// A program that calls again so soon after a call does so in a loop. To wake the serving thread in between would take longer.
constexpr std::int64_t kSoonNs = 30'000;
/// Then that thread looks by itself, ever less often while the loop goes on.
constexpr std::chrono::microseconds kFirstLook(100), kMostBetweenLooks(500);

}  // namespace

Status MailDriver::start(std::unique_ptr<TransportMail> mail, SpinLimits spin, bool serves,
                         AfterMail after_mail) {
  mail_ = std::move(mail);
  after_mail_ = std::move(after_mail);
  waits_ = std::make_unique<WaitPolicy>(spin);
  wake_fd_.reset(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!wake_fd_.valid())
    return Status::error(Code::kSystem,
                         fmt::format("{}: cannot create an eventfd; see \"ulimit -n\"", name_));
  if (!serves) return Status::success();
  // Signals are for threads of the program.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Status status;
  try {
    thread_ = std::thread([this] { serve(); });
  } catch (const std::system_error& error) {
    status = Status::error(Code::kSystem, fmt::format("{}: cannot start a thread: {}", name_, error.what()));
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return status;
}

Status MailDriver::greet() {
  // A connection may need both ends to poll until it is ready, and ranks need not call for long.
  if (Status status = send([&] { mail_->greet_all(); }); !status.ok()) return status;
  const auto is_connected = [&] {
    return mail_->num_greeted() == mail_->num_connections() && !mail_->has_unsent();
  };
  wait_until(is_connected, "the connections of all ranks");
  return is_connected() ? Status::success() : failure();
}

MailDriver::~MailDriver() {
  stops_.store(true, std::memory_order_seq_cst);
  wake();
  {
    const std::lock_guard lock(parking_);
    nobody_waits_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

MailDriver::Waiting::Waiting(MailDriver& driver) : driver_(driver) {
  if (driver_.num_waiting_.fetch_add(1, std::memory_order_seq_cst) != 0) return;
  const std::int64_t before_ns = driver_.waited_until_ns_.load(std::memory_order_relaxed);
  driver_.soon_again_.store(SystemClock::instance().now_ns() - before_ns < kSoonNs,
                            std::memory_order_relaxed);
}

MailDriver::Waiting::~Waiting() {
  driver_.waited_until_ns_.store(SystemClock::instance().now_ns(), std::memory_order_relaxed);
  if (driver_.num_waiting_.fetch_sub(1, std::memory_order_seq_cst) != 1) return;
  const Parked parked = driver_.parked_.load(std::memory_order_seq_cst);
  if (parked == Parked::kNo) return;
  if (parked == Parked::kForMoments && driver_.soon_again_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(driver_.parking_);
  driver_.nobody_waits_.notify_one();
}

Status MailDriver::no_memory() const {
  Status status;
  status.code = Code::kOutOfMemory;
  status.message = "out of memory";  // short enough to need no allocation
  return status;
}

bool MailDriver::step_locked() {
  if (!failure_.ok()) return false;
  try {
    auto moved = mail_->progress();
    if (moved && after_mail_) {
      const auto wrote = after_mail();
      if (wrote)
        moved = *moved || *wrote;
      else
        moved = fail(wrote.error());
    }
    if (moved) {
      if (a_sleep_ends()) wake();
      return *moved;
    }
    // A latch is given up because the communicator has failed, which names who died.
    const Status known = members_.failure();
    fail_locked(known.ok() ? moved.error() : known);
  } catch (const std::bad_alloc&) {
    fail_locked(no_memory());
  }
  return true;
}

/// What it writes is sent at once: nobody may make another step for long.
Result<bool> MailDriver::after_mail() {
  bool wrote = false;
  while (true) {
    const auto more = after_mail_();
    if (!more) return more;
    if (!*more) return wrote;
    wrote = true;
    if (Status sent = mail_->send_and_take_own(); !sent.ok()) return fail(std::move(sent));
  }
}

/// Sends what was written.
void MailDriver::send_locked() {
  Status sent = mail_->send_and_take_own();
  if (sent.ok() && after_mail_)
    if (const auto wrote = after_mail(); !wrote) sent = wrote.error();
  if (!sent.ok()) fail_locked(sent);
  if (a_sleep_ends()) wake();
}

bool MailDriver::step() {
  bool moved = false;
  {
    const std::lock_guard lock(mutex_);
    moved = step_locked();
  }
  tell_others();
  return moved;
}

void MailDriver::step_with_others() {
  comm::OutstandingCalls::process().advance_all();
  if (!step()) (void)look_for_failure();
}

void MailDriver::fail_locked(const Status& status) {
  if (!failure_.ok() || stops_.load(std::memory_order_acquire)) return;
  failure_ = status;
  failure_.scope = std::max(failure_.scope, Scope::kCommunicator);
  tells_.store(true, std::memory_order_relaxed);
  failed_.store(true, std::memory_order_release);
  if (a_sleep_ends()) wake();
}

void MailDriver::fail_for_want_of_memory() {
  fail_with(no_memory());
}

void MailDriver::fail_with(const Status& status) {
  {
    const std::lock_guard lock(mutex_);
    fail_locked(status);
  }
  tell_others();
}

/// Ranks that wait for this one end, too: the communicator has failed. Without the lock.
void MailDriver::tell_others() {
  if (!tells_.load(std::memory_order_relaxed) || !tells_.exchange(false, std::memory_order_relaxed)) return;
  if (members_.failure().ok()) (void)members_.fail_all(failure());
}

/// The communicator knows who died. Where a connection broke it gets time to find out: the peer may live, and have left because
/// it knew sooner.
bool MailDriver::look_for_failure() {
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
  return failed();
}

Status MailDriver::failure() {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void MailDriver::time_out(const char* what, std::int64_t limit_ns) {
  fail_with(Status::error(Code::kTimeout, fmt::format("{}: {} did not come within {} s", name_, what,
                                                      static_cast<double>(limit_ns) / 1e9)));
}

/// What one thread waits for may come while another one makes progress, which leaves nothing for a sleeper to see.
bool MailDriver::a_sleep_ends() const {
  return std::any_of(sleepers_.begin(), sleepers_.end(), [](const Ends* ends) { return (*ends)(); });
}

/// Sleeps until there is mail, or ends() is true. Several threads may, on what the first of them has armed.
void MailDriver::sleep(std::int64_t most_ns, const Ends& ends) {
  std::vector<pollfd> fds;
  {
    const std::lock_guard lock(mutex_);
    const bool is_first = sleepers_.empty();
    bool quiet = true;
    if (is_first) {
      armed_fds_.assign(1, {wake_fd_.get(), POLLIN, 0});
      quiet = mail_->arm(armed_fds_);
    }
    if (!quiet || step_locked() || ends()) {
      if (is_first) mail_->disarm();
      return;
    }
    try {
      fds = armed_fds_;
      sleepers_.push_back(&ends);
    } catch (const std::bad_alloc&) {
      if (is_first) mail_->disarm();
      throw;
    }
  }
  const timespec limit{most_ns / 1'000'000'000, static_cast<long>(most_ns % 1'000'000'000)};
  (void)ppoll(fds.data(), fds.size(), &limit, nullptr);
  const std::lock_guard lock(mutex_);
  std::erase(sleepers_, &ends);
  if (!a_sleep_ends()) {
    std::uint64_t num = 0;
    (void)!::read(wake_fd_.get(), &num, sizeof num);
  }
  if (sleepers_.empty()) mail_->disarm();
}

void MailDriver::sleep_or_fail(std::int64_t most_ns, const Ends& ends) {
  try {
    sleep(most_ns, ends);
  } catch (const std::bad_alloc&) {
    fail_with(no_memory());
  }
}

/// The serving thread.
void MailDriver::serve() {
  // More mail often follows at once. The program may want the core, so the policy learns.
  WaitPolicy brief({.spin_polls = 100, .yield_polls = 20});
  Waiter waiter(brief, WaitKind::kMemory, SystemClock::instance());
  const auto stops = [this] { return stops_.load(std::memory_order_acquire); };
  const Ends ends = [&] { return stops() || failed(); };
  while (!stops()) {
    if (num_waiting_.load(std::memory_order_seq_cst) > 0) {
      park();
      continue;
    }
    if (failed()) return tell_others();
    if (step()) {
      waiter.moved();
    } else if (!waiter.stay_awake()) {
      sleep_or_fail(1'000'000'000, ends);
      (void)look_for_failure();
    }
  }
}

bool MailDriver::program_is_away() const {
  return num_waiting_.load(std::memory_order_seq_cst) == 0 &&
         SystemClock::instance().now_ns() - waited_until_ns_.load(std::memory_order_relaxed) >= kSoonNs;
}

/// Until no thread of the program makes progress. One that waits in a loop does not say so after each wait.
void MailDriver::park() {
  std::unique_lock lock(parking_);
  const auto stops = [this] { return stops_.load(std::memory_order_acquire); };
  auto moment = kFirstLook;
  while (!stops()) {
    if (!soon_again_.load(std::memory_order_relaxed)) {
      parked_.store(Parked::kUntilTold, std::memory_order_seq_cst);
      nobody_waits_.wait(lock, [&] { return num_waiting_.load(std::memory_order_seq_cst) == 0 || stops(); });
      break;
    }
    parked_.store(Parked::kForMoments, std::memory_order_seq_cst);
    const std::int64_t before_ns = waited_until_ns_.load(std::memory_order_relaxed);
    (void)nobody_waits_.wait_for(lock, moment);
    moment = std::min(2 * moment, kMostBetweenLooks);
    if (program_is_away()) break;
    // A long wait is no loop: its end is worth waking up for.
    if (waited_until_ns_.load(std::memory_order_relaxed) == before_ns)
      soon_again_.store(false, std::memory_order_relaxed);
  }
  parked_.store(Parked::kNo, std::memory_order_seq_cst);
}

void MailDriver::wake() const {
  const std::uint64_t one = 1;
  if (wake_fd_.valid()) (void)!::write(wake_fd_.get(), &one, sizeof one);
}

Status MailDriver::end() {
  Status status = members_.abort(fmt::format("its {} is being recovered", name_));
  if (!look_for_failure()) return status;
  locked([] {});  // a step that began before
  return Status::success();
}

Status MailDriver::leave() {
  {
    // Ranks that are through close their connections.
    const std::lock_guard lock(mutex_);
    leaves_ = true;
  }
  Status status = members_.call({.collective = Collective::kBarrier});
  const std::lock_guard lock(mutex_);
  // Nobody answers any more, so a call that has not ended never will.
  if (failure_.ok()) {
    failure_ = Status::error(Code::kInvalidArgument,
                             fmt::format("{}: it was destroyed while a call was outstanding", name_));
    failed_.store(true, std::memory_order_release);
    if (a_sleep_ends()) wake();
  }
  return status;
}

}  // namespace hips::ps
