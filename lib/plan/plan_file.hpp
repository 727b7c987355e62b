#pragma once

#include <string>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/base/result.hpp"

namespace hips::plan {

/// A plan that somebody has stored, and perhaps edited.
struct StoredPlan {
  Plan plan;
  std::string topology;  ///< the spec in its notes, for which it was made; "" where there is none
  std::string digest;    ///< 16 hexadecimal digits: of ranks that read the same file, the same
};

/// Plan files are read as a whole; a larger one would take more memory than it is worth.
inline constexpr std::size_t kMostPlanBytes = std::size_t{256} << 20U;

/// Reads a file of plan_json, or an algorithm of MSCCL's XML, whose messages name no NICs: set_rails(). What
/// it has is well formed, not correct: prove_stored() is for that.
///
/// Errors   kInvalidArgument: the path, and what is wrong with the file.
Result<StoredPlan> read_plan_file(const std::string& path);

/// Proves a plan from the file `path` on the topology that it is to run on, with one credit.
///
/// Cost     that of check().
/// Errors   kInvalidArgument: the first error that the checker found, with its counter-example. kUnsupported:
///          the plan is for another number of ranks.
Status prove_stored(const std::string& path, const Plan& plan, const Topology& topology);

}  // namespace hips::plan
