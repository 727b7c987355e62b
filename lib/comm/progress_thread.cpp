#include "lib/comm/progress_thread.hpp"

#include <pthread.h>
#include <sched.h>

#include <csignal>
#include <ctime>
#include <system_error>
#include <thread>

#include "lib/base/log.hpp"
#include "lib/base/os/futex.hpp"
#include "lib/base/wait/clock.hpp"
#include "lib/comm/calls/outstanding_calls.hpp"

namespace hips::comm {

ProgressThread& ProgressThread::process() {
  // Never destroyed, because its thread runs until the process ends.
  static ProgressThread& instance = *new ProgressThread;
  return instance;
}

void ProgressThread::wake() {
  bell_.fetch_add(1, std::memory_order_seq_cst);
  if (!started_.load(std::memory_order_acquire)) {
    start();
  } else if (asleep_.load(std::memory_order_seq_cst)) {
    futex_wake_all(bell_);
  }
}

void ProgressThread::start() {
  if (started_.exchange(true, std::memory_order_acq_rel)) return;
  // Signals must be delivered to threads of the program, never to this one.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([this] { run(); }).detach();
  } catch (const std::system_error& error) {
    // Without the thread, calls make progress only while the program is inside a HiPS call.
    log::warn(log::Subsystem::kComm, "HIPS_PROGRESS_THREAD: cannot start the thread: {}", error.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void ProgressThread::run() {
  OutstandingCalls& calls = OutstandingCalls::process();
  Clock& clock = SystemClock::instance();
  std::uint32_t seen = bell_.load(std::memory_order_seq_cst);
  std::int64_t awake_since_ns = clock.now_ns();
  while (true) {
    calls.advance_all();
    if (const std::uint32_t bell = bell_.load(std::memory_order_seq_cst); bell != seen) {
      seen = bell;
      awake_since_ns = clock.now_ns();
      continue;
    }
    if (!calls.any_outstanding()) {
      // wake() writes `bell_` and then reads `asleep_`; this thread writes `asleep_` and then reads `bell_`. All
      // four are sequentially consistent, so at least one side sees the write of the other.
      asleep_.store(true, std::memory_order_seq_cst);
      if (bell_.load(std::memory_order_seq_cst) == seen) futex_wait(bell_, seen, INT64_MAX);
      asleep_.store(false, std::memory_order_seq_cst);
    } else if (clock.now_ns() - awake_since_ns < kAwakeNs) {
      sched_yield();
    } else {
      const timespec nap{0, kNapNs};
      nanosleep(&nap, nullptr);
    }
  }
}

}  // namespace hips::comm
