#pragma once

#include <atomic>
#include <mutex>
#include <vector>

namespace hips::comm {

class WatchedCommunicator;

/// The communicators of this process that have ever had non-blocking calls. A thread that waits on one of
/// them moves the others' calls on as well: a peer may wait for those first.
///
/// Threads  any. Empty, as it is in programs with blocking calls only, it costs one load.
class InFlight {
 public:
  static InFlight& process();

  /// Until remove(), which has to come before the communicator's end.
  void add(WatchedCommunicator& communicator);
  void remove(WatchedCommunicator& communicator);
  /// Has any but `self` a call under way?
  [[nodiscard]] bool has_others(const WatchedCommunicator& self) const;
  /// Has any a call under way?
  [[nodiscard]] bool any_under_way() const;
  /// Moves all but `self` and those that another thread moves.
  void advance_others(const WatchedCommunicator& self);
  /// Moves all but those that another thread moves; for a thread that is in no call.
  void advance_all();

 private:
  /// Is there any but `self`? From its own thread.
  [[nodiscard]] bool lists_others(const WatchedCommunicator& self) const;

  std::atomic<int> num_{0};
  mutable std::mutex mutex_;
  std::vector<WatchedCommunicator*> all_;
};

}  // namespace hips::comm
