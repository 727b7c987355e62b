#pragma once

#include <cstdint>
#include <vector>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/base/result.hpp"
#include "lib/cost/loads.hpp"

namespace hips::cost {

/// The time in which a message passes a NIC in one direction.
struct Passage {
  std::int64_t server = 0;
  Rail rail = 0;
  bool out = true;
  std::int64_t begin_ns = 0, end_ns = 0;
  friend bool operator==(const Passage&, const Passage&) = default;
};

/// A step of a rank and its time. A send begins with its first byte and ends when its last byte is at the
/// receiver. A reduction or copy takes no time once its operands are there.
struct TimedStep {
  Rank rank = 0;
  StepId step = 0;
  std::int64_t begin_ns = 0, end_ns = 0;
  std::int64_t bytes = 0;         ///< of a send
  std::vector<Passage> passages;  ///< of a send: out of the sender, in and out of relays, in at the end
  friend bool operator==(const TimedStep&, const TimedStep&) = default;
};

/// A whole operation; steps in the order of their times.
struct Timeline {
  std::vector<TimedStep> steps;
  std::int64_t end_ns = 0;
};

/// Computes when each step of a plan runs, from the rates and latencies of the topology.
///
///   rank 0 NIC 0 out  [ to 1 ][ to 2 ]            a NIC sends and receives one message at a time; a
///   rank 1 NIC 0 in    [from 0]                   message reaches the receiver's NIC a hop's latency later;
///   rank 2 NIC 0 in            [from 0]           then the step that waits for it runs
///
/// Messages are not divided. A real run, in which segments of one stage overlap the next, is faster, between
/// `bandwidth_seconds` and `barrier_seconds` of Cost. Reductions, credits and the CPU's work cost nothing.
/// Messages that leave a switch of a tree upwards share the rate of its cables.
///
/// Units    ns.
/// Cost     the number of messages of all ranks, times the logarithm of those that wait.
/// Errors   kUnsupported: a message over a NIC that is down, which would never end. kInternal: steps that
///          wait for one another; check() finds such plans first.
Result<Timeline> timeline(const Topology& topology, const Plan& plan, Volume volume);

}  // namespace hips::cost
