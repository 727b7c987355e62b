#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

namespace hips::inproc {

/// When an action may happen: both the step and the time must be reached.
struct Due {
  std::uint64_t step = 0;
  std::int64_t ns = 0;

  /// The first moment that is not before either.
  [[nodiscard]] static Due later(const Due& a, const Due& b) {
    return {std::max(a.step, b.step), std::max(a.ns, b.ns)};
  }
};

/// Actions ordered by when they are due. An action that is due no earlier than another in step and time, and was
/// added later, also comes out later. This keeps data before its arrival.
///
/// Cost     O(log n) each.
template <typename Action>
class Schedule {
 public:
  void add(const Due& due, Action action) {
    by_step_.push({due.step, next_seq_, due.ns, std::move(action)});
    ++next_seq_;
  }

  /// Removes the next action that is due at `now`, if any.
  std::optional<Action> take(const Due& now) {
    while (!by_step_.empty() && by_step_.top().key <= static_cast<std::int64_t>(now.step)) {
      Item item = by_step_.top();
      by_step_.pop();
      item.key = item.ns;
      by_time_.push(std::move(item));
    }
    if (by_time_.empty() || by_time_.top().key > now.ns) return std::nullopt;
    Action action = by_time_.top().action;
    by_time_.pop();
    return action;
  }

  [[nodiscard]] std::size_t size() const { return by_step_.size() + by_time_.size(); }

 private:
  struct Item {
    Item(std::uint64_t step, std::uint64_t sequence, std::int64_t due_ns, Action what)
        : key(static_cast<std::int64_t>(step)), seq(sequence), ns(due_ns), action(std::move(what)) {}
    std::int64_t key;  ///< the step, then the time
    std::uint64_t seq;
    std::int64_t ns;
    Action action;
    friend bool operator<(const Item& a, const Item& b) {  // std::priority_queue gives the greatest
      return a.key != b.key ? a.key > b.key : a.seq > b.seq;
    }
  };
  std::priority_queue<Item> by_step_;
  std::priority_queue<Item> by_time_;
  std::uint64_t next_seq_ = 0;
};

}  // namespace hips::inproc
