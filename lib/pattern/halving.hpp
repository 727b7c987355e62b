#pragma once

#include <bit>
#include <cstdint>

namespace hips::pattern {

/// Recursive doubling and halving over any number of members.
///
/// `core` members, the largest power of two <= size, exchange in log2(core) rounds. The `rest` = size - core
/// others are outside the core: of the first 2*rest members each even one sends its vector to the odd one
/// above it before the rounds, and gets the result after them. Members keep their order, so that operands can
/// be reduced by rank.
///
///   size 6:   member   0  1  2  3  4  5
///             sends    0->1  2->3  .  .
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

/// Is `index` a member of a pair, of which one is in the core?
constexpr bool in_pair(const Halving& halving, std::int64_t index) {
  return index < 2 * halving.rest();
}

/// Is `index` the even member of a pair, which sends its vector to the odd one and waits for the result?
constexpr bool is_outside_core(const Halving& halving, std::int64_t index) {
  return in_pair(halving, index) && index % 2 == 0;
}

/// The other member of the pair of `index`. Requires in_pair(halving, index).
constexpr std::int64_t pair_of(const Halving& /*halving*/, std::int64_t index) {
  return index ^ 1;
}

/// The number of `index` among the core members. Requires !is_outside_core(halving, index).
constexpr std::int64_t core_index(const Halving& halving, std::int64_t index) {
  return in_pair(halving, index) ? index / 2 : index - halving.rest();
}

/// The member that is core member v.
constexpr std::int64_t core_member(const Halving& halving, std::int64_t v) {
  return v < halving.rest() ? 2 * v + 1 : v + halving.rest();
}

/// The core member that v exchanges with in a round: the nearest first, as halving sends most bytes in the
/// first round.
constexpr std::int64_t exchange_peer(std::int64_t v, std::int32_t round) {
  return v ^ (std::int64_t{1} << round);
}

}  // namespace hips::pattern
