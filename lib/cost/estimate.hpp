#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/cost/bound.hpp"
#include "lib/cost/loads.hpp"

namespace hips::cost {

/// One direction of a NIC, or of the cables above a switch of a tree, and what it carries in a whole
/// operation.
struct LinkLoad {
  std::string name;  ///< "server <01> NIC 1 out", "pod 2 in"
  std::int64_t bytes = 0;
  double seconds = 0;
};

/// What an allreduce by a plan costs and how near that is to what is possible.
struct Cost {
  Volume volume;
  std::int32_t num_steps = 0;    ///< messages that must follow one another
  double latency_seconds = 0;    ///< num_steps times the latency of a hop
  double bandwidth_seconds = 0;  ///< of the busiest link; segments overlap the stages
  double barrier_seconds = 0;    ///< sum over stages of the busiest link; a barrier after each stage
  double bound_seconds = 0;      ///< no allreduce has a smaller bandwidth term
  double ratio = 1;              ///< bandwidth_seconds / bound_seconds; 1 where nothing must be sent
  double barrier_ratio = 1;      ///< barrier_seconds / bound_seconds
  LinkLoad busiest;
  Bound bound;
  Loads loads;

  /// Latency and bandwidth term together.
  [[nodiscard]] double seconds() const { return latency_seconds + bandwidth_seconds; }
};

/// Prices a plan from programs: those of all ranks, or those of all ranks of one server. One server's NICs
/// stand for all where the algorithm is symmetric, as HiPS is; `loads.complete` says where relayed bytes are
/// missing.
///
/// Units    seconds, bytes.
/// Cost     linear in the programs; for one server nothing grows with the topology.
/// Threads  pure; any thread.
/// Errors   (thrown) kInvalidArgument: plan and topology differ in ranks, or `programs` are neither.
/// Example  Cost cost = estimate(topology, plan.shape, plan.programs, {.count = 1 << 20});
Cost estimate(const Topology& topology, const PlanShape& shape, std::span<const Program> programs,
              Volume volume);

/// Prices a plan without holding it: makes the program of one rank after the other.
Cost estimate_all(const Topology& topology, const PlanBuilder& builder, Volume volume);

/// Prices a plan by the server of `rank` alone: what one of a million servers can do.
Cost estimate_server_of(const Topology& topology, const PlanBuilder& builder, Rank rank, Volume volume);

/// The loads' part of estimate(), for loads counted in another way.
Cost price(const Topology& topology, const PlanShape& shape, Loads loads, Volume volume);

}  // namespace hips::cost
