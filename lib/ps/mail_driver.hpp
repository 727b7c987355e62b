#pragma once

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include <hips/status.hpp>

#include "lib/base/os/unique_fd.hpp"
#include "lib/base/wait/clock.hpp"
#include "lib/base/wait/wait_policy.hpp"
#include "lib/base/wait/waiter.hpp"
#include "lib/comm/calls/outstanding_calls.hpp"
#include "lib/comm/communicator.hpp"
#include "lib/ps/transport_mail.hpp"

namespace hips::ps {

/// Makes progress with the mail of a table or a model on one rank, and ends its waits when the communicator fails.
///
/// Threads that wait make progress. On a rank that serves its node a thread of its own does while none waits, so others are
/// served while the program computes; it sleeps when there is no mail. Between waits that follow one another at once it is not
/// woken, but looks by itself within half a millisecond.
///
/// Threads  any number at once, but for serve() and the destructor. What receives mail, and what send() calls, has the lock.
/// Errors   a failure of the communicator is one of the mail, and the other way round. It stays failed.
class MailDriver {
 public:
  /// Called with the lock after mail has arrived or was written; may write mail. True: it did, and may write more.
  using AfterMail = std::function<Result<bool>()>;

  /// `name`: of what is driven, for errors. `nap_ns`: of a sleeping waiter, between two looks for a failure.
  MailDriver(comm::Communicator& members, std::string name, std::int64_t nap_ns = 50'000'000)
      : members_(members), name_(std::move(name)), nap_ns_(nap_ns) {}
  ~MailDriver();
  MailDriver(const MailDriver&) = delete;
  MailDriver& operator=(const MailDriver&) = delete;

  /// Before all else. What receives the mail may now be called at any time.
  ///
  /// Errors   kSystem: no descriptor, no thread.
  Status start(std::unique_ptr<TransportMail> mail, SpinLimits spin, bool serves, AfterMail after_mail = {});
  /// Waits until every peer's connection is ready. All ranks call it.
  ///
  /// Errors   the failure.
  Status greet();

  [[nodiscard]] TransportMail& mail() { return *mail_; }
  [[nodiscard]] bool failed() const { return failed_.load(std::memory_order_acquire); }
  [[nodiscard]] Status failure();
  /// Asks the communicator for failures; true if there is one. For ranks that send nothing for long.
  bool look_for_failure();

  /// Calls write(), which may write mail, and sends it. The failure, where it did not.
  template <typename Write>
  Status send(Write&& write) {
    Status status;
    {
      const std::lock_guard lock(mutex_);
      status = failure_;
      if (status.ok()) try {
          write();
          send_locked();
        } catch (const std::bad_alloc&) {
          fail_locked(no_memory());
        }
    }
    tell_others();
    return status;
  }

  /// Calls use() with the lock.
  template <typename Use>
  void locked(Use&& use) {
    const std::lock_guard lock(mutex_);
    use();
  }

  /// Makes some progress; true if there was any.
  bool step();
  /// Makes progress, with collectives that are outstanding, too.
  void step_with_others();
  /// Makes progress until is_done() or a failure; `what` did not come, for an error.
  template <typename IsDone>
  void wait_until(IsDone&& is_done, const char* what) {
    if (is_done()) return;
    const Ends ends = [&] { return is_done() || failed(); };
    const Waiting waiting(*this);
    Clock& clock = SystemClock::instance();
    const std::int64_t limit_ns = members_.timeout_ns();
    const std::int64_t begin_ns = limit_ns == INT64_MAX ? 0 : clock.now_ns();
    // Over TCP, too: 200 yields were measured here, and fewer were not.
    Waiter waiter(*waits_, WaitKind::kMemory, clock);
    auto& collectives = comm::OutstandingCalls::process();
    const auto& progress = members_.origin().options.progress;
    constexpr int kRoundsPerLook = 1024;
    for (int round = 1; !ends(); ++round) {
      bool looks = round % kRoundsPerLook == 0;
      // A peer may wait for a collective that this rank has started.
      const bool others = collectives.any_outstanding();
      if (others) collectives.advance_all();
      if (step()) {
        waiter.moved();
      } else if (!waiter.stay_awake()) {
        sleep_or_fail(others ? std::min(kShortNapNs, nap_ns_) : nap_ns_, ends);
        looks = true;
      }
      if (!looks) continue;
      (void)look_for_failure();
      if (progress) progress();
      if (limit_ns != INT64_MAX && clock.now_ns() - begin_ns > limit_ns) time_out(what, limit_ns);
    }
  }

  /// A call of this rank has run out of memory half-way.
  void fail_for_want_of_memory();
  /// Fails the communicator, if it has not failed. Then no thread of this rank uses what is driven.
  ///
  /// Errors   kInternal: the control plane does not answer.
  Status end();
  /// This object is never destroyed: nobody waits for its thread, which ends with the failure.
  void stay() noexcept {
    if (thread_.joinable()) thread_.detach();
  }
  /// Waits until all ranks have come here: then no rank needs this one any more. Collective.
  Status leave();

 private:
  /// Whether what a thread waits for has come, or never will.
  using Ends = std::function<bool()>;
  /// While it exists a thread of the program makes progress, and the serving thread need not.
  class Waiting {
   public:
    explicit Waiting(MailDriver& driver);
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    MailDriver& driver_;
  };

  /// What the serving thread does while threads of the program make progress.
  enum class Parked : std::uint8_t { kNo, kUntilTold, kForMoments };
  static constexpr std::int64_t kShortNapNs = 50'000;  ///< where collectives are outstanding, too

  [[nodiscard]] Status no_memory() const;
  bool step_locked();
  void send_locked();
  Result<bool> after_mail();
  void fail_locked(const Status& status);
  /// The failure, if there is none yet. Others are told.
  void fail_with(const Status& status);
  void tell_others();
  void time_out(const char* what, std::int64_t limit_ns);
  void sleep(std::int64_t most_ns, const Ends& ends);
  void sleep_or_fail(std::int64_t most_ns, const Ends& ends);
  [[nodiscard]] bool a_sleep_ends() const;
  void serve();
  void park();
  [[nodiscard]] bool program_is_away() const;
  void wake() const;

  comm::Communicator& members_;
  std::string name_;
  std::int64_t nap_ns_;
  AfterMail after_mail_;
  std::unique_ptr<WaitPolicy> waits_;
  std::mutex mutex_;  ///< of what follows, and of what receives mail
  std::unique_ptr<TransportMail> mail_;
  Status failure_;
  std::int64_t lost_since_ns_ = 0;  ///< a connection; 0: none
  bool leaves_ = false;
  std::atomic<bool> failed_{false}, tells_{false};  ///< tells_: the others have to hear of it
  std::vector<pollfd> armed_fds_;
  std::vector<const Ends*> sleepers_;             ///< what threads that sleep wait for
  std::atomic<int> num_waiting_{0};               ///< threads of the program that make progress
  std::atomic<std::int64_t> waited_until_ns_{0};  ///< the end of the last such wait
  std::atomic<bool> soon_again_{false};           ///< the one that there is began soon after
  std::atomic<Parked> parked_{Parked::kNo};
  std::mutex parking_;
  std::condition_variable nobody_waits_;
  std::atomic<bool> stops_{false};
  UniqueFd wake_fd_;
  std::thread thread_;
};

}  // namespace hips::ps
