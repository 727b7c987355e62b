#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <hips/plan.hpp>

namespace hips::exec {

class EngineTeam;
class OperationImpl;

/// A segment that is ready to be sent and waits for the NIC.
struct ReadySegment {
  EngineTeam* team = nullptr;
  OperationImpl* operation = nullptr;
  StepId step = -1;
  std::int32_t priority = 0;
  std::uint64_t sequence = 0;
  std::int32_t segment = 0;
  std::int32_t stage = 0;

  /// Order of sending: lower priority number first, then older operation, lower segment, earlier stage.
  /// Ordering by the earliest stage alone leaves a NIC idle if lanes are unequal.
  [[nodiscard]] bool before(const ReadySegment& other) const {
    if (priority != other.priority) return priority < other.priority;
    if (sequence != other.sequence) return sequence < other.sequence;
    if (segment != other.segment) return segment < other.segment;
    if (stage != other.stage) return stage < other.stage;
    return step < other.step;
  }
};

/// The software queue in front of one NIC. Posted work cannot be reordered, so the engine bounds what is
/// posted and orders segments here. Network-aware scheduling would replace this queue.
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
  /// Removes the segments of an operation that has ended.
  void drop(const OperationImpl* operation) {
    std::erase_if(heap_, [&](const ReadySegment& ready) { return ready.operation == operation; });
    std::make_heap(heap_.begin(), heap_.end(), after);
  }

 private:
  static bool after(const ReadySegment& a, const ReadySegment& b) { return b.before(a); }
  std::vector<ReadySegment> heap_;
};

}  // namespace hips::exec
