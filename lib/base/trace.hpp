#pragma once

#include <cstdint>

namespace hips {

/// One span of a rank's time inside an operation.
struct TraceEvent {
  enum class Kind : std::uint8_t {
    kOperation,  ///< a whole call, from entering to leaving
    kWait,       ///< from the moment a step lacked nothing but a peer's message until it came
    kWire,       ///< from posting a segment to its local completion
    kReduce,     ///< folding or copying a segment
  };
  Kind kind = Kind::kOperation;
  std::int64_t begin_ns = 0, end_ns = 0;
  std::uint64_t communicator = 0;
  std::uint64_t sequence = 0;  ///< of the operation on its communicator
  std::int32_t lane = -1, stage = -1, round = -1, level = -1, rail = -1;
  std::int32_t peer = -1;
  std::int32_t segment = -1;
  std::int64_t bytes = 0;
};

/// Takes events from whatever carries calls out. A null sink costs one branch.
///
/// Threads  any.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  virtual void record(const TraceEvent& event) = 0;
};

}  // namespace hips
