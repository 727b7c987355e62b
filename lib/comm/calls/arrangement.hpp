#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <hips/plan.hpp>

#include "lib/base/sections.hpp"
#include "lib/exec/layout.hpp"

namespace hips::comm {

/// The mapping of the sections of a vector to the blocks of a plan.
///
/// A rank owns several blocks, one in each lane, and a plan orders its blocks by lane, not by rank. So each
/// rank's section is divided among its blocks in the ratio of the lanes' shares. The plan's vector consists of
/// these pieces in block order.
struct Arrangement {
  /// A range of elements that is contiguous in the plan's vector and in its section.
  struct Piece {
    std::uint64_t in_plan = 0;     ///< first element in the plan's vector
    std::uint64_t in_section = 0;  ///< first element in the section of `rank`
    std::uint64_t elements = 0;
    Rank rank = -1;
  };
  std::vector<Piece> pieces;  ///< in the order of the plan's vector; not empty
  exec::Boundaries boundaries;
  bool in_order = false;  ///< the plan's vector equals the concatenated sections

  /// `owners`: the rank that owns each block; every rank owns at least one.
  static Arrangement of(const BlockMap& blocks, std::span<const Rank> owners, const Sections& sections);
};

}  // namespace hips::comm
