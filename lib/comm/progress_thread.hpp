#pragma once

#include <atomic>
#include <cstdint>

namespace hips::comm {

/// HIPS_PROGRESS_THREAD: a thread that moves non-blocking calls while the program computes. It looks for them
/// all the time for a moment after a call was started, then every kNapNs, and sleeps where none is under way.
///
/// Owns     a detached thread, from the first wake() on, for as long as the process lives.
/// Cost     a core while calls are under way and move; where ranks fill all cores it takes time from them.
/// Threads  any.
/// Source   Open MPI's and MPICH's asynchronous progress; see also InFlight.
class ProgressThread {
 public:
  static ProgressThread& process();

  /// A call was started.
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
