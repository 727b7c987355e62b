#pragma once

#include <cstdint>
#include <vector>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/base/result.hpp"
#include "lib/cost/loads.hpp"

namespace hips::cost {

/// When a message passes a NIC in one direction.
struct Passage {
  std::int64_t server = 0;
  Rail rail = 0;
  bool out = true;
  std::int64_t begin_ns = 0, end_ns = 0;
  friend bool operator==(const Passage&, const Passage&) = default;
};

/// A step of a rank, and when it takes place. A send begins with its first byte and ends when the last one is
/// at its receiver; a reduction or copy takes no time once all that it needs is there.
struct TimedStep {
  Rank rank = 0;
  StepId step = 0;
  std::int64_t begin_ns = 0, end_ns = 0;
  std::int64_t bytes = 0;         ///< of a send
  std::vector<Passage> passages;  ///< of a send: out of the sender, in and out of relays, in at the end
  friend bool operator==(const TimedStep&, const TimedStep&) = default;
};

/// A whole operation; what takes place first stands first.
struct Timeline {
  std::vector<TimedStep> steps;
  std::int64_t end_ns = 0;
};

/// Lets a plan take place by the rates and latencies of the topology.
///
///   rank 0 NIC 0 out  [ to 1 ][ to 2 ]            a NIC carries one message at a time in each direction,
///   rank 1 NIC 0 in    [ of 0 ]                   the receiver's a hop's latency later;
///   rank 2 NIC 0 in            [ of 0 ]           then the step that waits for it runs
///
/// Messages are whole: where segments of one stage overlap the next, a run is faster, and between
/// `bandwidth_seconds` and `barrier_seconds` of Cost. Folds, credits and the host's work cost nothing. What
/// leaves a switch of a tree upwards shares its cables' rate.
///
/// Units    ns.
/// Cost     the messages of all ranks, times the logarithm of those that wait.
/// Errors   kUnsupported: a message over a NIC that is down, which would take for ever. kInternal: steps that
///          wait for one another; the checker finds such plans first.
Result<Timeline> timeline(const Topology& topology, const Plan& plan, Volume volume);

}  // namespace hips::cost
