#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <hips/plan.hpp>

namespace hips::exec {

class OperationImpl;

/// A segment that could go out now, but for the NIC.
struct ReadySegment {
  OperationImpl* operation = nullptr;
  StepId step = -1;
  std::int32_t priority = 0;
  std::uint64_t sequence = 0;
  std::int32_t segment = 0;
  std::int32_t stage = 0;

  /// Which goes first: the lower priority number, the older operation, the lowest segment, the earliest
  /// stage. "Earliest stage first" alone leaves a NIC idle with unequal lanes.
  [[nodiscard]] bool before(const ReadySegment& other) const {
    if (priority != other.priority) return priority < other.priority;
    if (sequence != other.sequence) return sequence < other.sequence;
    if (segment != other.segment) return segment < other.segment;
    if (stage != other.stage) return stage < other.stage;
    return step < other.step;
  }
};

/// The software queue in front of one NIC: posted work cannot be reordered any more, so what is posted is
/// bounded and order is made here. The seam for network-aware scheduling.
class NicQueue {
 public:
  void push(const ReadySegment& ready) {
    heap_.push_back(ready);
    std::push_heap(heap_.begin(), heap_.end(), after);
  }
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] const ReadySegment& front() const { return heap_.front(); }
  void pop() {
    std::pop_heap(heap_.begin(), heap_.end(), after);
    heap_.pop_back();
  }
  /// Drops what belongs to an operation that has ended.
  void drop(const OperationImpl* operation) {
    std::erase_if(heap_, [&](const ReadySegment& ready) { return ready.operation == operation; });
    std::make_heap(heap_.begin(), heap_.end(), after);
  }

 private:
  static bool after(const ReadySegment& a, const ReadySegment& b) { return b.before(a); }
  std::vector<ReadySegment> heap_;
};

}  // namespace hips::exec
