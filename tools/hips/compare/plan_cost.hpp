#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <hips/topology.hpp>

#include "lib/cost/bound.hpp"
#include "tools/hips/compare/entry.hpp"

namespace hips::compare {

/// How the cost of a plan was computed.
enum class Basis : std::uint8_t {
  kNone,         ///< not computed, see PlanCost::reason
  kAllServers,   ///< from the programs of all ranks
  kSomeServers,  ///< from the first, second and last server, which are like all others or the busiest
  kClosedForm,   ///< by closed_form()
};
/// "all servers", "some servers", "closed form"; "" for kNone
const char* to_string(Basis basis);

/// The predicted time of a call of one size.
struct SizeCost {
  std::uint64_t bytes = 0;
  double seconds = 0;  ///< cost::expected_seconds() on wires
  double latency_seconds = 0;
  double bandwidth_seconds = 0;  ///< of the busiest link
  std::int64_t busiest_bytes = 0;
  double of_bound = 1;  ///< the network's bound divided by `seconds`; at most 1
};

/// The cost of a plan on a topology, for several sizes.
struct PlanCost {
  Entry entry;
  Basis basis = Basis::kNone;
  std::string reason;  ///< why there is no estimate
  std::string description;
  std::int64_t num_steps = 0;     ///< messages in sequence
  std::int64_t num_hops = 0;      ///< hops in sequence, including relays
  std::int64_t num_messages = 0;  ///< of the rank that sends most
  std::int64_t fan_in = 0;        ///< peers that send to one NIC of a rank at the same time
  std::string busiest;            ///< busiest link at the largest size
  double bandwidth_of_bound = 1;  ///< the bound divided by the bandwidth term, at the largest size
  bool relays = false;            ///< servers have to forward messages: shown, but never the best plan
  bool scaled = false;            ///< counted at the largest size only; proportional at others
  std::vector<SizeCost> sizes;    ///< one for each size
};

/// Up to these numbers programs are counted; about 0.1 us per step.
struct CountingLimits {
  std::int64_t messages = 100'000;         ///< of one rank
  std::int64_t steps = 4'000'000;          ///< of all ranks
  std::int64_t counted_steps = 6'000'000;  ///< of the ranks whose programs are read, times sizes
};

/// Estimates the cost of a plan without storing it.
///
/// Small plans are counted for every rank and size, larger ones for the largest size only. Even larger ones
/// are counted for three servers, if those determine the busiest link. Closed forms are used if one rank's
/// program is too long or all programs would be needed.
///
/// Units    bytes of the whole vector, ascending; seconds.
/// Cost     at most some millions of steps for any topology: well below a second.
/// Errors   none: a plan that cannot be built or estimated has a reason.
PlanCost estimate_plan(const Entry& entry, std::span<const std::uint64_t> sizes,
                       const CountingLimits& limits = {});

/// A plan of cost::select(), and the largest size for which it is selected.
struct Selected {
  std::string plan;
  std::uint64_t up_to_bytes = UINT64_MAX;
};

/// The costs of a topology's plans.
struct Comparison {
  Topology topology;
  cost::Bound bound;
  std::vector<PlanCost> plans;     ///< on the topology, then baselines
  std::vector<Selected> selected;  ///< the default plans between nodes; empty if the topology is too large
  /// For each size, the best plan without relays that is no baseline; plans.size() if there is none.
  std::vector<std::size_t> best;
  std::vector<std::uint64_t> sizes;
};

/// Estimates all entries of a topology.
Comparison compare(const Topology& topology, std::span<const Entry> entries,
                   std::vector<std::uint64_t> sizes);

}  // namespace hips::compare
