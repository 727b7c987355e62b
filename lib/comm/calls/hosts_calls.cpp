#include "lib/comm/calls/hosts_calls.hpp"

#include <algorithm>

#include "lib/comm/calls/hosts_call.hpp"
#include "lib/node/node_layout.hpp"

namespace hips::comm {

void HostsCalls::add(HostsCall& call) {
  {
    const std::lock_guard lock(mutex_);
    call.next_ = nullptr;
    (first_ == nullptr ? first_ : last_->next_) = &call;
    last_ = &call;
    any_waits_.store(true, std::memory_order_release);
  }
  engine_.enlist(*this);
}

HostsCall* HostsCalls::take_next() {
  if (!any_waits_.load(std::memory_order_acquire)) return nullptr;
  const std::lock_guard lock(mutex_);
  HostsCall* const call = std::exchange(first_, first_->next_);
  any_waits_.store(first_ != nullptr, std::memory_order_release);
  return call;
}

bool HostsCalls::advance() {
  bool moved = false;
  while (true) {
    if (active_ != nullptr) {
      moved |= active_->advance();
      if (!active_->has_ended()) return moved;
      std::exchange(active_, nullptr)->close();
    }
    HostsCall* const next = take_next();
    if (next == nullptr) return moved;
    moved = true;
    if (next->begin(++number_)) active_ = next;
  }
}

int HostsCalls::arm() {
  armed_ = active_ != nullptr && active_->in_memory();
  return armed_ ? node_.arm() : -1;
}

void HostsCalls::disarm() {
  if (std::exchange(armed_, false)) node_.disarm();
}

std::shared_ptr<const Sections> HostsCalls::shares(std::uint64_t elements, std::size_t element_bytes) {
  constexpr std::size_t kMost = 16;
  const std::pair key(elements, element_bytes);
  const auto known = std::ranges::find(shares_, key, [](const auto& entry) { return entry.first; });
  if (known != shares_.end()) {
    std::rotate(shares_.begin(), known, known + 1);
    return shares_.front().second;
  }
  std::vector<std::uint64_t> counts;
  for (Rank number = 0; number < per_host_; ++number)
    counts.push_back(node::part_of(elements, element_bytes, number, per_host_).elements);
  auto made = std::make_shared<const Sections>(counts);
  if (shares_.size() == kMost) shares_.pop_back();
  shares_.insert(shares_.begin(), {key, made});
  return made;
}

std::vector<Rank> HostsCalls::waiting_for() const {
  return active_ == nullptr ? std::vector<Rank>() : active_->waiting_for();
}

std::string HostsCalls::waiting_text() const {
  return active_ == nullptr ? std::string() : active_->waiting_text();
}

}  // namespace hips::comm
