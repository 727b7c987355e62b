#include "lib/plan/check/check_layout.hpp"

#include <algorithm>

#include "lib/plan/wide.hpp"

namespace hips::plan {

CheckLayout::CheckLayout(const BlockMap& map, std::int64_t count)
    : num_blocks_(map.num_blocks), count_(count) {
  boundary_.reserve(static_cast<std::size_t>(num_blocks_) + 1);
  for (BlockIdx block = 0; block <= num_blocks_; ++block) boundary_.push_back(map.boundary(block, count));
}

std::optional<std::int64_t> CheckLayout::least_count(const BlockMap& map, std::int64_t per_block) {
  constexpr Int128 kMost = Int128{1} << 40;
  Int128 least = per_block;
  for (const BlockMap::Part& part : map.parts) {
    // A part of `share` gets at least floor(share * count) elements; rounding its start down takes at most
    // one.
    const Int128 share_num = static_cast<Int128>(part.end.num) * part.begin.den -
                             static_cast<Int128>(part.begin.num) * part.end.den;
    const Int128 share_den = static_cast<Int128>(part.end.den) * part.begin.den;
    if (share_num == 0) continue;
    const bool whole = share_num == share_den;
    const Int128 wanted = static_cast<Int128>(part.blocks.count) * per_block + (whole ? 0 : 1);
    // check_structure() keeps denominators below 2^40 and blocks below 2^31: no overflow.
    least = std::max(least, (wanted * share_den + share_num - 1) / share_num);
    if (least > kMost) return std::nullopt;
  }
  return static_cast<std::int64_t>(least);
}

ElementRange CheckLayout::extent(const BufferRange& range, bool in_place) const {
  const BlockIdx first = range.blocks.first % num_blocks_;
  std::int64_t base = 0;
  switch (range.buffer) {
    case Buffer::kInput:
      break;
    case Buffer::kOutput:
      base = in_place ? 0 : count_;
      break;
    case Buffer::kScratch:
      base = (2 + range.blocks.first / num_blocks_) * count_;
      break;
  }
  return {base + boundary_[first], base + boundary_[first + range.blocks.count]};
}

BlockIdx CheckLayout::block_at(std::int64_t element) const {
  const auto after = std::upper_bound(boundary_.begin(), boundary_.end(), element % count_);
  return after - boundary_.begin() - 1;
}

}  // namespace hips::plan
