#pragma once

#include <atomic>
#include <mutex>
#include <vector>

namespace hips::comm {

class WatchedCommunicator;

/// The communicators of this process that have non-blocking calls under way. A thread that waits on one of
/// them moves the others on as well: a peer may wait for those first.
///
/// Threads  any. Empty, as it is in programs with blocking calls only, it costs one load.
class InFlight {
 public:
  static InFlight& process();

  void add(WatchedCommunicator& communicator);
  void remove(WatchedCommunicator& communicator);
  /// Is there any but `self`?
  [[nodiscard]] bool has_others(const WatchedCommunicator& self) const;
  /// Moves all but `self` and those that another thread moves.
  void advance_others(const WatchedCommunicator& self);

 private:
  std::atomic<int> num_{0};
  mutable std::mutex mutex_;
  std::vector<WatchedCommunicator*> all_;
};

}  // namespace hips::comm
