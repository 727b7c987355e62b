#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/base/result.hpp"

namespace hips::cost {

/// Plans that share the sizes among them: small vectors want few messages, large ones few bytes.
struct Selection {
  struct Choice {
    std::unique_ptr<PlanBuilder> builder;
    std::uint64_t up_to_bytes = UINT64_MAX;  ///< of the vector; ascending, the last one has no limit
  };
  std::vector<Choice> choices;
};

/// The cheapest plans where nobody named one: by the chain of hops, the messages that a rank has to handle,
/// and its busiest link. A function of the topology alone, so that all ranks choose alike, and every run as
/// the last.
///
/// Candidates: HiPS and, where every pair of ranks is one hop apart, recursive doubling for up to 256 KiB.
///
/// Cost     prices some twenty sizes by the programs of one server.
/// Errors   those of plan::make_builder().
Result<Selection> select(const Topology& topology);

}  // namespace hips::cost
