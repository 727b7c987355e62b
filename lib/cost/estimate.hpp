#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/cost/bound.hpp"
#include "lib/cost/loads.hpp"
#include "lib/plan/plan_builder.hpp"

namespace hips::cost {

/// One direction of a NIC, or of the cables above a switch of a tree, and its load in a whole operation.
struct LinkLoad {
  std::string name;  ///< "server <01> NIC 1 out", "pod 2 in"
  std::int64_t bytes = 0;
  double seconds = 0;
};

/// The cost of an allreduce by a plan, and how near it is to the bound.
struct Cost {
  Volume volume;
  std::int32_t num_steps = 0;    ///< longest chain of messages, one after the other
  double latency_seconds = 0;    ///< num_steps times the latency of a hop
  double bandwidth_seconds = 0;  ///< of the busiest link, where segments of different stages overlap
  double barrier_seconds = 0;    ///< sum over stages of the busiest link, with a barrier after each stage
  double bound_seconds = 0;      ///< no allreduce has a smaller bandwidth term
  double ratio = 1;              ///< bandwidth_seconds / bound_seconds; 1 if nothing must be sent
  double barrier_ratio = 1;      ///< barrier_seconds / bound_seconds
  LinkLoad busiest;
  Bound bound;
  Loads loads;

  /// Latency and bandwidth term together.
  [[nodiscard]] double seconds() const { return latency_seconds + bandwidth_seconds; }
};

/// Whether the bound is wanted, which takes long where cables differ.
enum class BoundUse : std::uint8_t {
  kCompared,
  kLeftOut,  ///< bound, bound_seconds and ratios stay as they are initialised
};

/// Estimates the cost of a plan from the programs of all ranks, or of all ranks of one server. One server
/// represents all if the algorithm is symmetric, as HiPS is. `loads.complete` is false if relayed bytes are
/// missing.
///
/// Units    seconds, bytes.
/// Cost     linear in the programs; for one server nothing grows with the topology.
/// Threads  pure; any thread.
/// Errors   (thrown) kInvalidArgument: plan and topology differ in ranks, or `programs` are neither of all
///          ranks nor of one server.
/// Example  Cost cost = estimate(topology, plan.shape, plan.programs, {.count = 1 << 20});
Cost estimate(const Topology& topology, const PlanShape& shape, std::span<const Program> programs,
              Volume volume, BoundUse bound_use = BoundUse::kCompared);

/// Like estimate(), but makes and counts the program of one rank at a time instead of holding the plan.
Cost estimate_all(const Topology& topology, const PlanBuilder& builder, Volume volume,
                  BoundUse bound_use = BoundUse::kCompared);

/// Like estimate(), from the programs of the server of `rank` alone. Works for a million servers.
Cost estimate_server_of(const Topology& topology, const PlanBuilder& builder, Rank rank, Volume volume);

/// Like estimate(), from loads that are already counted.
Cost estimate_loads(const Topology& topology, const PlanShape& shape, Loads loads, Volume volume,
                    BoundUse bound_use = BoundUse::kCompared);

}  // namespace hips::cost
