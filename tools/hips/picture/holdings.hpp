#pragma once

#include <cstdint>
#include <vector>

#include <hips/plan.hpp>

#include "lib/base/result.hpp"
#include "lib/cost/timeline.hpp"

namespace hips::picture {

/// From a moment on a rank's blocks hold the sum of some ranks' inputs.
struct Holding {
  std::int64_t from_ns = 0;
  Rank rank = 0;
  BlockRange blocks;
  std::int32_t sum = 0;  ///< in Holdings::sums
  friend bool operator==(const Holding&, const Holding&) = default;
};

/// Who holds which sums when, while a plan takes place. Before its first holding a block holds its rank's own
/// input; scratch is followed but not listed.
struct Holdings {
  std::vector<std::vector<Rank>> sums;  ///< the ranks in each, ascending
  std::vector<Holding> list;            ///< by time
};

/// Follows the data through a plan in the order of its timeline.
///
/// Cost     the blocks of all steps.
/// Errors   kUnsupported: more different sums than a page should have.
Result<Holdings> holdings(const Plan& plan, const cost::Timeline& timeline);

}  // namespace hips::picture
