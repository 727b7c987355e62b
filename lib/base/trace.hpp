#pragma once

#include <cstdint>

namespace hips {

/// A span of a rank's time inside an operation, or what the scheduler of a model has decided.
struct TraceEvent {
  enum class Kind : std::uint8_t {
    kOperation,  ///< a whole call, from entry to return
    kWait,       ///< from the moment when only a peer's message was missing until it arrived
    kWire,       ///< from posting a segment to its local completion
    kReduce,     ///< reducing or copying a segment
    kUpdate,  ///< an update of a model, from its request until it was applied, or handed back (`members` 0)
    kValues,  ///< values of a model, from the decision who gets them until the shard's node has sent them
  };
  Kind kind = Kind::kOperation;
  std::int64_t begin_ns = 0, end_ns = 0;
  std::uint64_t communicator = 0;
  std::uint64_t sequence = 0;  ///< of the operation on its communicator, of the group or chain in its shard
  std::int32_t lane = -1, stage = -1, round = -1, level = -1, rail = -1;
  std::int32_t peer = -1;
  std::int32_t segment = -1;
  std::int64_t bytes = 0;
  // Of models:
  std::int32_t shard = -1;
  std::int32_t members = -1;  ///< updates that travel as one; nodes that pass values on
  std::int64_t version = -1;  ///< of the shard, that the rank of an update had read
  std::int64_t delay = -1;    ///< of an update: later versions that it was applied to, or would have been
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
