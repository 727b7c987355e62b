#pragma once

#include <cstdint>

namespace hips::comm {

/// What a waiting rank does as time goes by. A late peer is normal, so waiting never ends by itself: it asks
/// whether the peer is in the same call, and once it says who is missing.
///
/// Units    ns since the wait began, in the engine's clock.
/// Threads  a value of one call.
class Patience {
 public:
  static constexpr std::int64_t kFirstAskNs = 1'000'000'000;
  static constexpr std::int64_t kAskEveryNs = 1'000'000'000;
  static constexpr std::int64_t kAskAllNs = 59'000'000'000;
  static constexpr std::int64_t kWarnNs = 60'000'000'000;

  struct Actions {
    bool ask = false;      ///< query the last call of those that are missing
    bool ask_all = false;  ///< of everybody, to name who holds up the others
    bool warn = false;     ///< log who is missing, with each one's last call
  };
  Actions at(std::int64_t waited_ns) {
    Actions actions;
    if (waited_ns >= next_ask_ns_) {
      actions.ask = true;
      next_ask_ns_ = waited_ns + kAskEveryNs;
    }
    // Only after the answers can have come.
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
