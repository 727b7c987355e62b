#include <algorithm>

#include <hips/plan.hpp>

#include "lib/plan/wide.hpp"

namespace hips {
namespace {

using plan::Int128;

/// floor(a * b / c) for non-negative a, b and positive c; the product has 126 bits at most.
std::int64_t floor_mul_div(std::int64_t a, std::int64_t b, std::int64_t c) {
  return static_cast<std::int64_t>(static_cast<Int128>(a) * b / c);
}

}  // namespace

std::int64_t BlockMap::boundary(BlockIdx block, std::int64_t count) const {
  if (parts.empty() || block <= 0) return 0;
  if (block >= num_blocks) return count;
  const auto after = std::upper_bound(parts.begin(), parts.end(), block,
                                      [](BlockIdx b, const Part& part) { return b < part.blocks.first; });
  const Part& part = after == parts.begin() ? parts.front() : *(after - 1);
  const std::int64_t begin = floor_mul_div(part.begin.num, count, part.begin.den);
  const std::int64_t end = floor_mul_div(part.end.num, count, part.end.den);
  return begin + floor_mul_div(block - part.blocks.first, end - begin, part.blocks.count);
}

}  // namespace hips
