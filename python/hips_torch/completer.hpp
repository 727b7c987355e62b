#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "python/hips_torch/work.hpp"

namespace hips::torch_backend {

/// Completes the works of a process group that nobody waits for, in the order of their start: a thread of its own makes progress
/// on them, so that they overlap with computation, and runs what has been chained to their futures.
///
/// A thread that waits for a work completes it itself. So that a call which is waited for at once costs no switch between
/// threads, this thread is not woken for each: it looks for works every 50 us while it finds some, less often while it finds
/// none, and sleeps after 0.1 s without any.
///
/// Threads  any.
class Completer {
 public:
  static std::shared_ptr<Completer> make();
  Completer(const Completer&) = delete;
  Completer& operator=(const Completer&) = delete;

  /// Calls `start`(request) for the work, and takes care of it; nothing where that fails. Works start one at a time.
  template <typename Start>
  hips_status_t start(const c10::intrusive_ptr<HipsWork>& work, const Start& start) {
    const std::lock_guard lock(starting_);
    work->set_completer(*this);
    // Nobody else knows of the request yet.
    if (const hips_status_t status = start(work->request()); status != HIPS_OK) return status;
    add(work);
    return HIPS_OK;
  }
  /// Waits until no work is left: abort the communicator first, where their calls may never end. Nothing may be started
  /// afterwards. Where the end of a work calls it, on this completer's own thread, that thread goes on until none is left.
  void stop();
  /// Called by a work that is complete.
  void remove(const HipsWork& work);
  /// Whether a call has not ended yet. Completes the works of those that have.
  [[nodiscard]] bool has_outstanding();

 private:
  static constexpr std::chrono::microseconds kShortest{50}, kLongest{1000}, kAwake{100'000};

  Completer() = default;
  void add(c10::intrusive_ptr<HipsWork> work);
  void run();
  /// The oldest work that nobody waits for, which this thread then owns; null if there is none. With the lock held.
  c10::intrusive_ptr<HipsWork> take_one();

  std::mutex starting_;
  std::mutex mutex_;  ///< guards the following members
  std::condition_variable wake_;
  std::deque<c10::intrusive_ptr<HipsWork>> works_;
  bool asleep_ = false, stops_ = false;
  std::thread thread_;
};

}  // namespace hips::torch_backend
