#pragma once

#include <atomic>
#include <cstdint>

namespace hips::comm {

/// HIPS_PROGRESS_THREAD: a thread that makes progress on non-blocking calls while the program computes. It polls
/// for kAwakeNs after the latest call was started, then every kNapNs. It sleeps while no call is outstanding.
///
/// Owns     a detached thread, from the first wake() on, for as long as the process lives.
/// Cost     up to one core while calls are outstanding; that core is taken from a rank if the node has no spare
///          one.
/// Threads  any.
/// Source   Open MPI's and MPICH's asynchronous progress; see also OutstandingCalls.
class ProgressThread {
 public:
  static ProgressThread& process();

  /// Notifies the thread that a call was started.
  void wake();

  static constexpr std::int64_t kAwakeNs = 200'000, kNapNs = 50'000;

 private:
  void start();
  void run();

  std::atomic<bool> started_{false};
  std::atomic<bool> asleep_{false};
  std::atomic<std::uint32_t> bell_{0};  ///< calls started
};

}  // namespace hips::comm
