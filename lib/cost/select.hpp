#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/base/result.hpp"

namespace hips::cost {

/// A plan that could carry a call.
struct Candidate {
  std::unique_ptr<PlanBuilder> builder;
  std::int64_t num_messages = 0;  ///< that rank 0 sends
  std::string excluded;           ///< why it is not taken whatever it costs; empty: it may be
};

/// Plans that share the sizes among them: small vectors want few messages, large ones few bytes.
struct Selection {
  struct Choice {
    std::size_t candidate = 0;
    std::uint64_t up_to_bytes = UINT64_MAX;  ///< of the vector; ascending, the last one has no limit
  };
  std::vector<Candidate> candidates;  ///< HiPS first
  std::vector<Choice> choices;

  /// The plan of a choice.
  [[nodiscard]] const PlanBuilder& builder(const Choice& choice) const {
    return *candidates[choice.candidate].builder;
  }
};

/// What a call of `bytes` is expected to take: the plan's chain of hops, the messages that a rank has to
/// handle, and the busiest link.
///
/// Units    bytes of the whole vector, seconds.
double expected_seconds(const Topology& topology, const Candidate& candidate, std::uint64_t bytes);

/// The cheapest plans where nobody named one, by expected_seconds(). A function of the topology alone, so
/// that all ranks choose alike, and every run as the last.
///
/// Candidates: HiPS and, where every pair of ranks is one hop apart, recursive doubling for up to 256 KiB.
///
/// Cost     prices some twenty sizes by the programs of one server.
/// Errors   those of plan::make_builder().
Result<Selection> select(const Topology& topology);

}  // namespace hips::cost
