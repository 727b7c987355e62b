#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

namespace hips {

/// What to build.
struct PlanRequest {
  std::string algorithm = "hips";
  /// Empty: mesh on switches, ring on cables. One entry: for every level. Otherwise one entry per level
  /// except the node level.
  std::vector<LevelPattern> patterns{};
  /// flat-ps: number of ranks that lead. 0: one.
  std::int32_t num_leaders = 0;
  /// flat-ring: number of NICs of each server to use. 0: all that the topology allows.
  std::int32_t num_rings = 0;
};

/// Makes the shape of a plan once, and the program of any single rank from arithmetic alone.
///
/// Cost     shape: K * levels. program: K * sum of radices for HiPS, the number of the rank's messages for
///          flat algorithms; never the steps of the whole plan.
/// Threads  const calls from any thread.
class PlanBuilder {
 public:
  virtual ~PlanBuilder() = default;
  [[nodiscard]] virtual const PlanShape& shape() const = 0;
  /// Program of `rank`, 0 <= rank < shape().num_ranks.
  [[nodiscard]] virtual Program program(Rank rank) const = 0;
};

}  // namespace hips
