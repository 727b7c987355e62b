#pragma once

#include <span>
#include <string>
#include <vector>

#include <hips/topology.hpp>

#include "lib/cost/select.hpp"

namespace hips::cost {

/// What messages between nodes cost, as measured there.
struct Constants {
  double hop_seconds = 0;      ///< latency of a hop
  double message_seconds = 0;  ///< that a message takes of a rank and of the cores that it shares
  double bytes_per_s = 0;      ///< of a NIC, one direction
  /// The spec of the topology between the nodes on which that was, and the times of calls there, by candidate (candidates()).
  std::string spec{};
  std::vector<TriedTimes> tried{};
  std::uint32_t num_nodes = 0;  ///< among which that was
  friend bool operator==(const Constants&, const Constants&) = default;
};

/// The measured time of a call whose bytes hardly matter.
struct SmallCall {
  double num_hops = 0;      ///< of the longest chain
  double num_messages = 0;  ///< of the busiest rank
  double seconds = 0;
};

/// What the model counts in a small call by a candidate; `seconds` stays 0.
SmallCall small_call(const Topology& topology, const Candidate& candidate);

/// Corrects times of plans between two nodes that something else disturbed: no plan of more hops is faster than an exchange of the
/// vectors, one message each way. Calls of 0 seconds were not tried. An exchange that took far longer than another plan was disturbed
/// itself, and nothing changes.
void correct_between_two(std::span<SmallCall> calls);

/// The latency and the overhead per message that explain the times best, by least squares of relative errors; neither is below 0.
/// Of plans in the same proportion of hops and messages, both get the same share of the time.
///
/// Shapes   one call or more.
Constants fit_small(std::span<const SmallCall> calls);

/// The topology with these rates and latencies: other levels and links keep their rate relative to the fastest.
Topology with_constants(const Topology& topology, const Constants& constants);

/// select() by measured constants: also among algorithms that the model leaves out otherwise, and those whose messages servers
/// relay.
///
/// Errors   those of candidates().
Result<Selection> select(const Topology& topology, const Medium& medium, const Constants& constants);

}  // namespace hips::cost
