#pragma once

#include <cstdint>

namespace hips::comm {

/// Decides when a waiting rank queries its peers and when it logs the missing ranks. A late peer is normal,
/// so these limits never end the wait.
///
/// Units    ns since the wait began, in the engine's clock.
/// Threads  one object per call; no locking.
class WaitLimits {
 public:
  static constexpr std::int64_t kFirstAskNs = 1'000'000'000;
  static constexpr std::int64_t kAskEveryNs = 1'000'000'000;
  static constexpr std::int64_t kAskAllNs = 59'000'000'000;
  static constexpr std::int64_t kWarnNs = 60'000'000'000;

  struct Actions {
    bool ask = false;      ///< query the missing ranks for their last call
    bool ask_all = false;  ///< query all ranks, to find the one that delays the others
    bool warn = false;     ///< log the missing ranks and the last call of each
  };
  Actions at(std::int64_t waited_ns) {
    Actions actions;
    if (waited_ns >= next_ask_ns_) {
      actions.ask = true;
      next_ask_ns_ = waited_ns + kAskEveryNs;
    }
    // The warning uses the answers to ask_all, so it comes one look later at the earliest.
    if (!warned_ && waited_ns >= kWarnNs && asked_all_) actions.warn = warned_ = true;
    if (!asked_all_ && waited_ns >= kAskAllNs) actions.ask_all = asked_all_ = true;
    return actions;
  }

 private:
  std::int64_t next_ask_ns_ = kFirstAskNs;
  bool asked_all_ = false;
  bool warned_ = false;
};

}  // namespace hips::comm
