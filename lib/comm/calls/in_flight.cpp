#include "lib/comm/calls/in_flight.hpp"

#include <algorithm>

#include "lib/comm/watched_communicator.hpp"

namespace hips::comm {

InFlight& InFlight::process() {
  // Never destroyed: requests may end in exit handlers.
  static InFlight& instance = *new InFlight;
  return instance;
}

void InFlight::add(WatchedCommunicator& communicator) {
  const std::lock_guard lock(mutex_);
  all_.push_back(&communicator);
  num_.store(static_cast<int>(all_.size()), std::memory_order_relaxed);
}

void InFlight::remove(WatchedCommunicator& communicator) {
  const std::lock_guard lock(mutex_);
  std::erase(all_, &communicator);
  num_.store(static_cast<int>(all_.size()), std::memory_order_relaxed);
}

bool InFlight::lists_others(const WatchedCommunicator& self) const {
  return num_.load(std::memory_order_relaxed) > (self.makes_requests() ? 1 : 0);
}

bool InFlight::has_others(const WatchedCommunicator& self) const {
  if (!lists_others(self)) return false;
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(
      all_, [&](const WatchedCommunicator* one) { return one != &self && one->has_calls_under_way(); });
}

bool InFlight::any_under_way() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(all_, [](const WatchedCommunicator* one) { return one->has_calls_under_way(); });
}

void InFlight::advance_others(const WatchedCommunicator& self) {
  if (!lists_others(self)) return;
  // Whoever holds it does the same, or is about to be done.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  for (WatchedCommunicator* one : all_)
    if (one != &self) one->advance_if_free();
}

void InFlight::advance_all() {
  if (num_.load(std::memory_order_relaxed) == 0) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  for (WatchedCommunicator* one : all_) one->advance_if_free();
}

}  // namespace hips::comm
