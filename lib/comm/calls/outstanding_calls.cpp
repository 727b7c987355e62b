#include "lib/comm/calls/outstanding_calls.hpp"

#include <algorithm>

#include "lib/comm/communicator.hpp"

namespace hips::comm {

OutstandingCalls& OutstandingCalls::process() {
  // Never destroyed: exit handlers may complete requests.
  static OutstandingCalls& instance = *new OutstandingCalls;
  return instance;
}

void OutstandingCalls::add(Communicator& communicator) {
  const std::lock_guard lock(mutex_);
  all_.push_back(&communicator);
  num_.store(static_cast<int>(all_.size()), std::memory_order_relaxed);
}

void OutstandingCalls::remove(Communicator& communicator) {
  const std::lock_guard lock(mutex_);
  std::erase(all_, &communicator);
  num_.store(static_cast<int>(all_.size()), std::memory_order_relaxed);
}

bool OutstandingCalls::lists_others(const Communicator& self) const {
  return num_.load(std::memory_order_relaxed) > (self.makes_requests() ? 1 : 0);
}

bool OutstandingCalls::has_others(const Communicator& self) const {
  if (!lists_others(self)) return false;
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(
      all_, [&](const Communicator* one) { return one != &self && one->has_outstanding_calls(); });
}

bool OutstandingCalls::any_outstanding() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(all_, [](const Communicator* one) { return one->has_outstanding_calls(); });
}

void OutstandingCalls::advance_others(const Communicator& self) {
  if (!lists_others(self)) return;
  // The thread that holds the mutex makes the same progress, or releases it soon.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  for (Communicator* one : all_)
    if (one != &self) one->advance_if_free();
}

void OutstandingCalls::advance_all() {
  if (num_.load(std::memory_order_relaxed) == 0) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  for (Communicator* one : all_) one->advance_if_free();
}

}  // namespace hips::comm
