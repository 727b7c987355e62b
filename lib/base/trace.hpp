#pragma once

#include <cstdint>

namespace hips {

/// A span of a rank's time inside an operation.
struct TraceEvent {
  enum class Kind : std::uint8_t {
    kOperation,  ///< a whole call, from entry to return
    kWait,       ///< from the moment when only a peer's message was missing until it arrived
    kWire,       ///< from posting a segment to its local completion
    kReduce,     ///< reducing or copying a segment
  };
  Kind kind = Kind::kOperation;
  std::int64_t begin_ns = 0, end_ns = 0;
  std::uint64_t communicator = 0;
  std::uint64_t sequence = 0;  ///< number of the operation on its communicator
  std::int32_t lane = -1, stage = -1, round = -1, level = -1, rail = -1;
  std::int32_t peer = -1;
  std::int32_t segment = -1;
  std::int64_t bytes = 0;
};

/// Receives the events of calls. A null sink costs one branch.
///
/// Threads  any.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  virtual void record(const TraceEvent& event) = 0;
  /// Writes what has been recorded. Threads: as record().
  virtual void flush() {}
};

}  // namespace hips
