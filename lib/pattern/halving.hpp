#pragma once

#include <bit>
#include <cstdint>

#include "lib/pattern/pairs.hpp"

namespace hips::pattern {

/// Recursive doubling and halving over any number of members.
///
/// `core` members, the largest power of two <= size, exchange in log2(core) rounds; pairs.hpp has the others.
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

/// The core member that v exchanges with in a round: the nearest first, as halving sends most bytes in the
/// first round.
constexpr std::int64_t exchange_peer(std::int64_t v, std::int32_t round) {
  return v ^ (std::int64_t{1} << round);
}

}  // namespace hips::pattern
