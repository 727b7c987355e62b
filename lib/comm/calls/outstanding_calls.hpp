#pragma once

#include <atomic>
#include <mutex>
#include <vector>

namespace hips::comm {

class Communicator;

/// The communicators of this process that have ever had non-blocking calls. A thread that waits on one
/// communicator makes progress on the outstanding calls of the others too, because a peer may wait for those
/// first.
///
/// Cost     one load in programs with blocking calls only.
/// Threads  any.
class OutstandingCalls {
 public:
  static OutstandingCalls& process();

  /// `communicator` calls remove() before its end.
  void add(Communicator& communicator);
  void remove(Communicator& communicator);
  /// True if any communicator but `self` has an outstanding call.
  [[nodiscard]] bool has_others(const Communicator& self) const;
  /// True if any communicator has an outstanding call.
  [[nodiscard]] bool any_outstanding() const;
  /// Makes progress on all communicators but `self` and those on which another thread does.
  void advance_others(const Communicator& self);
  /// Makes progress on all communicators but those on which another thread does. For a thread outside of calls.
  void advance_all();

 private:
  /// True if there is a communicator beside `self`. Called by the thread that uses `self`.
  [[nodiscard]] bool lists_others(const Communicator& self) const;

  std::atomic<int> num_{0};
  mutable std::mutex mutex_;
  std::vector<Communicator*> all_;
};

}  // namespace hips::comm
