#pragma once

#include <cstdint>

namespace hips::pattern {

// Some exchanges need a certain number of members, such as a power of two: their core (halving.hpp, multiplying.hpp). The
// rest() = size - core() others are outside: of the first 2*rest() members each even one sends its vector to the odd one
// above it before the rounds of the core, and gets the result after them. Members keep their order, so that operands can be
// reduced by rank.
//
//   size 6, core 4:   member   0  1  2  3  4  5
//                     sends    0->1  2->3  .  .
//                     core        0     1  2  3

/// Is `index` a member of a pair, of which one is in the core?
template <typename Core>
constexpr bool in_pair(const Core& core, std::int64_t index) {
  return index < 2 * core.rest();
}

/// Is `index` the even member of a pair, which sends its vector to the odd one and waits for the result?
template <typename Core>
constexpr bool is_outside_core(const Core& core, std::int64_t index) {
  return in_pair(core, index) && index % 2 == 0;
}

/// The other member of the pair of `index`. Requires in_pair(core, index).
template <typename Core>
constexpr std::int64_t pair_of(const Core& /*core*/, std::int64_t index) {
  return index ^ 1;
}

/// The number of `index` among the core members. Requires !is_outside_core(core, index).
template <typename Core>
constexpr std::int64_t core_index(const Core& core, std::int64_t index) {
  return in_pair(core, index) ? index / 2 : index - core.rest();
}

/// The member that is core member v.
template <typename Core>
constexpr std::int64_t core_member(const Core& core, std::int64_t v) {
  return v < core.rest() ? 2 * v + 1 : v + core.rest();
}

}  // namespace hips::pattern
