#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <hips/topology.hpp>

#include "lib/cost/bound.hpp"
#include "tools/hips/compare/entry.hpp"

namespace hips::compare {

/// What the price of a plan was made from.
enum class Basis : std::uint8_t {
  kNone,         ///< not priced; the reason says why
  kAllServers,   ///< the programs of all ranks
  kSomeServers,  ///< those of the first, second and last server: all are alike, or these are the busiest
  kClosedForm,   ///< arithmetic: closed_form()
};
/// "all servers", "some servers", "closed form"; "" for kNone
const char* to_string(Basis basis);

/// A call of one size by one plan.
struct Price {
  std::uint64_t bytes = 0;
  double seconds = 0;  ///< cost::expected_seconds() on wires
  double latency_seconds = 0;
  double bandwidth_seconds = 0;  ///< of the busiest link
  std::int64_t busiest_bytes = 0;
  double of_bound = 1;  ///< the wiring's bound over `seconds`; 1 is as fast as anything can be
};

/// A plan on a wiring, priced for some sizes.
struct PricedPlan {
  Entry entry;
  Basis basis = Basis::kNone;
  std::string reason;  ///< why it is not priced
  std::string description;
  std::int64_t num_steps = 0;     ///< messages that must follow one another
  std::int64_t num_hops = 0;      ///< the same with every server that relays
  std::int64_t num_messages = 0;  ///< of the rank that sends most
  std::int64_t fan_in = 0;        ///< peers that send to one rank by one NIC at once
  std::string busiest;            ///< link, at the largest size
  double bandwidth_of_bound = 1;  ///< the bound over the bandwidth term, at the largest size
  bool relays = false;            ///< servers would have to forward messages: compared, and never the best
  bool scaled = false;            ///< loads were counted at the largest size, and are in proportion elsewhere
  std::vector<Price> prices;      ///< one for each size
};

/// What is counted before a price is made in another way. Some 0.1 us for each step.
struct Limits {
  std::int64_t messages = 100'000;         ///< of one rank
  std::int64_t steps = 4'000'000;          ///< of all ranks
  std::int64_t counted_steps = 6'000'000;  ///< of the ranks whose programs are read, times sizes
};

/// Prices a plan without holding it.
///
/// Of small plans every rank's program is counted at every size; of larger ones at the largest size; of still
/// larger ones the programs of three servers, where they tell the busiest link; and closed forms where one
/// rank's program alone is too long, or where all would be needed.
///
/// Units    bytes of the whole vector, ascending; seconds.
/// Cost     at most some millions of steps, whatever the topology: well below a second.
/// Errors   none: a plan that cannot be made or priced has a reason.
PricedPlan price_plan(const Entry& entry, std::span<const std::uint64_t> sizes, const Limits& limits = {});

/// Where the medium's selection changes, as cost::select() has it.
struct Selected {
  std::string plan;
  std::uint64_t up_to_bytes = UINT64_MAX;
};

/// A topology and what its plans cost.
struct Comparison {
  Topology topology;
  cost::Bound bound;
  std::vector<PricedPlan> plans;   ///< on the topology, then baselines
  std::vector<Selected> selected;  ///< what a call takes by default between hosts; empty: too large to say
  std::vector<std::size_t>
      best;  ///< for each size, of plans without relays that are no baselines; plans.size(): none
  std::vector<std::uint64_t> sizes;
};

/// Prices all entries of a topology.
Comparison compare(const Topology& topology, std::span<const Entry> entries,
                   std::vector<std::uint64_t> sizes);

}  // namespace hips::compare
