#include "lib/comm/calls/hierarchical_calls.hpp"

#include <algorithm>

#include "lib/base/exception_status.hpp"
#include "lib/comm/calls/hierarchical_call.hpp"
#include "lib/node/node_layout.hpp"

namespace hips::comm {

HierarchicalCalls::HierarchicalCalls(exec::Engine& engine, node::NodeTeam& node, const NodeGroups& nodes,
                                     const std::function<node::StagingLayout(Rank ranks)>& layout_of,
                                     std::function<void(const Status&)> on_error)
    : engine_(engine),
      node_(node),
      ranks_here_(nodes.ranks_here()),
      most_leaders_(nodes.least_ranks()),
      stagings_{{{nodes.least_ranks(), layout_of(nodes.least_ranks())},
                 {nodes.most_ranks(), layout_of(nodes.most_ranks())}}},
      on_error_(std::move(on_error)) {}

bool HierarchicalCalls::staging_holds(std::size_t element_bytes) const {
  return std::ranges::all_of(
      stagings_, [&](const auto& staging) { return staging.second.holds(element_bytes, staging.first); });
}

std::uint64_t HierarchicalCalls::elements_at_once(std::size_t element_bytes) const {
  std::uint64_t least = UINT64_MAX;
  for (const auto& [ranks, layout] : stagings_)
    least =
        std::min(least, std::uint64_t{layout.elements_at_once(element_bytes, ranks)} *
                            static_cast<std::uint64_t>(most_leaders_) / static_cast<std::uint64_t>(ranks));
  return least;
}

void HierarchicalCalls::add(HierarchicalCall& call) {
  {
    const std::lock_guard lock(mutex_);
    call.next_ = nullptr;
    (first_ == nullptr ? first_ : last_->next_) = &call;
    last_ = &call;
    any_waits_.store(true, std::memory_order_release);
  }
  try {
    engine_.activate(*this);
  } catch (...) {
    if (take_back(call)) throw;  // else the thread that makes progress has it
  }
}

bool HierarchicalCalls::take_back(HierarchicalCall& call) {
  const std::lock_guard lock(mutex_);
  HierarchicalCall* before = nullptr;
  HierarchicalCall* at = first_;
  while (at != nullptr && at != &call) before = std::exchange(at, at->next_);
  if (at == nullptr) return false;
  (before == nullptr ? first_ : before->next_) = call.next_;
  if (last_ == &call) last_ = before;
  any_waits_.store(first_ != nullptr, std::memory_order_release);
  call.close();
  return true;
}

Status HierarchicalCalls::found_exception() noexcept {
  Status status = status_of_exception();
  try {
    on_error_(status);
  } catch (...) {
    node_.fail(status);
  }
  return status;
}

HierarchicalCall* HierarchicalCalls::take_next() {
  if (!any_waits_.load(std::memory_order_acquire)) return nullptr;
  const std::lock_guard lock(mutex_);
  if (first_ == nullptr) return nullptr;  // add() has taken it back
  HierarchicalCall* const call = std::exchange(first_, first_->next_);
  any_waits_.store(first_ != nullptr, std::memory_order_release);
  return call;
}

bool HierarchicalCalls::advance() {
  bool moved = false;
  while (true) {
    if (active_ != nullptr) {
      moved |= active_->advance();
      if (!active_->has_ended()) return moved;
      std::exchange(active_, nullptr)->close();
    }
    HierarchicalCall* const next = take_next();
    if (next == nullptr) return moved;
    moved = true;
    if (next->begin(++number_)) active_ = next;
  }
}

int HierarchicalCalls::arm() {
  armed_ = active_ != nullptr && active_->in_memory();
  return armed_ ? node_.arm() : -1;
}

void HierarchicalCalls::disarm() {
  if (std::exchange(armed_, false)) node_.disarm();
}

std::shared_ptr<const Sections> HierarchicalCalls::shares(std::uint64_t elements, std::size_t element_bytes,
                                                          Rank num_leaders) {
  constexpr std::size_t kMost = 16;
  const std::tuple key(elements, element_bytes, num_leaders);
  const auto known = std::ranges::find(shares_, key, [](const auto& entry) { return entry.first; });
  if (known != shares_.end()) {
    std::rotate(shares_.begin(), known, known + 1);
    return shares_.front().second;
  }
  std::vector<std::uint64_t> counts(static_cast<std::size_t>(ranks_here_));
  for (Rank number = 0; number < num_leaders; ++number)
    counts[static_cast<std::size_t>(number)] =
        node::part_of(elements, element_bytes, number, num_leaders).elements;
  auto made = std::make_shared<const Sections>(counts);
  if (shares_.size() == kMost) shares_.pop_back();
  shares_.insert(shares_.begin(), {key, made});
  return made;
}

std::vector<Rank> HierarchicalCalls::waiting_for() const {
  return active_ == nullptr ? std::vector<Rank>() : active_->waiting_for();
}

std::string HierarchicalCalls::waiting_text() const {
  return active_ == nullptr ? std::string() : active_->waiting_text();
}

}  // namespace hips::comm
