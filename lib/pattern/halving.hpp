#pragma once

#include <bit>
#include <cstdint>

namespace hips::pattern {

/// Recursive doubling and halving over any number of members.
///
/// `core` = the largest power of two <= size members exchange in log2(core) rounds. The `rest` = size - core
/// others are folded in before and served after: of the first 2*rest members each even one hands its vector
/// to the odd one above it. Members keep their order, so operands can still be folded by rank.
///
///   size 6:   member   0  1  2  3  4  5
///             folds    0->1  2->3  .  .
///             core        0     1  2  3
struct Halving {
  std::int64_t size = 0;

  [[nodiscard]] constexpr std::int64_t core() const {
    return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(size)));
  }
  [[nodiscard]] constexpr std::int64_t rest() const { return size - core(); }
  [[nodiscard]] constexpr std::int32_t num_rounds() const {
    return std::countr_zero(static_cast<std::uint64_t>(core()));
  }
};

/// Is `index` one of a pair that is folded into one?
constexpr bool in_pair(const Halving& halving, std::int64_t index) {
  return index < 2 * halving.rest();
}

/// Is `index` the one of its pair that hands its vector over and waits?
constexpr bool is_folded_out(const Halving& halving, std::int64_t index) {
  return in_pair(halving, index) && index % 2 == 0;
}

/// The other one of the pair of `index`. Requires in_pair(halving, index).
constexpr std::int64_t pair_of(const Halving& /*halving*/, std::int64_t index) {
  return index ^ 1;
}

/// The number of `index` among the core members. Requires !is_folded_out(halving, index).
constexpr std::int64_t core_index(const Halving& halving, std::int64_t index) {
  return in_pair(halving, index) ? index / 2 : index - halving.rest();
}

/// The member that is core member v.
constexpr std::int64_t core_member(const Halving& halving, std::int64_t v) {
  return v < halving.rest() ? 2 * v + 1 : v + halving.rest();
}

/// With whom core member v exchanges in a round: the nearest first, where most bytes go when they halve.
constexpr std::int64_t exchange_peer(std::int64_t v, std::int32_t round) {
  return v ^ (std::int64_t{1} << round);
}

}  // namespace hips::pattern
