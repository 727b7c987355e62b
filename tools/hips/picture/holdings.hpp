#pragma once

#include <cstdint>
#include <vector>

#include <hips/plan.hpp>

#include "lib/base/result.hpp"
#include "lib/cost/timeline.hpp"

namespace hips::picture {

/// From this time on the blocks of a rank hold the sum of some ranks' inputs.
struct Holding {
  std::int64_t from_ns = 0;
  Rank rank = 0;
  BlockRange blocks;
  std::int32_t sum = 0;  ///< index in Holdings::sums
  friend bool operator==(const Holding&, const Holding&) = default;
};

/// The sums that ranks hold during a plan. Before its first holding a block holds its rank's own input.
/// Scratch is tracked but not listed.
struct Holdings {
  std::vector<std::vector<Rank>> sums;  ///< the ranks of each sum, ascending
  std::vector<Holding> list;            ///< by time
};

/// Tracks the data through a plan in the order of its timeline.
///
/// Cost     linear in the blocks of all steps.
/// Errors   kUnsupported: too many different sums for a page.
Result<Holdings> holdings(const Plan& plan, const cost::Timeline& timeline);

}  // namespace hips::picture
