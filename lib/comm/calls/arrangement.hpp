#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <hips/plan.hpp>

#include "lib/base/sections.hpp"
#include "lib/exec/layout.hpp"

namespace hips::comm {

/// Where the sections of a vector lie in the blocks of a plan.
///
/// A rank owns several blocks, one in each lane, and blocks stand in the order of lanes, not of ranks. So a
/// rank's section is cut into its blocks, in the ratio of the lanes' shares, and the vector that the plan
/// works on has the pieces of all sections in the order of blocks.
struct Arrangement {
  /// A run of elements that stands together in both.
  struct Piece {
    std::uint64_t in_plan = 0;     ///< where it begins in the plan's vector
    std::uint64_t in_section = 0;  ///< and in its rank's section
    std::uint64_t elements = 0;
    Rank rank = -1;
  };
  std::vector<Piece> pieces;  ///< in the order of the plan's vector; none is empty
  exec::Boundaries boundaries;
  bool in_order = false;  ///< the plan's vector is the sections, one behind the other

  /// `owners`: by block; every rank owns one at least.
  static Arrangement of(const BlockMap& blocks, std::span<const Rank> owners, const Sections& sections);
};

}  // namespace hips::comm
