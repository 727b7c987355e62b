#pragma once

#include <bit>
#include <cstdint>

#include "lib/pattern/modulo.hpp"

namespace hips::pattern {

/// Recursive halving on a ring of 2^k members with partners at distances 1, 1, 3, 5, 11, ... on alternating
/// sides: a third of the distances of halving by bits.
///
///   rho(s) = 1 - 2 + 4 - ... = (1 - (-2)^(s+1)) / 3
///   step s: an even member exchanges with member + rho(s), an odd one with member - rho(s)
///
/// `direction` -1 mirrors it, so that two lanes load both directions of the ring equally.
///
/// The members that hold the same pieces before step s are the even ones that are equal modulo 2^(s+1), and
/// their partners. Therefore the bits of an even number say which halves a member keeps, and the last step
/// separates even and odd members.
///
/// Source   De Sensi, Bonato, Saam, Hoefler: Swing, NSDI 2024.
struct Swing {
  std::int64_t size = 1;  ///< a power of two
  std::int32_t direction = 1;

  [[nodiscard]] constexpr std::int32_t num_rounds() const {
    return std::countr_zero(static_cast<std::uint64_t>(size));
  }
};

/// Sum of (-2)^i for i = 0..round.
constexpr std::int64_t swing_distance(std::int32_t round) {
  std::int64_t power = 1, sum = 0;
  for (std::int32_t i = 0; i <= round; ++i, power *= -2) sum += power;
  return sum;
}

/// Signed steps along the ring from a member to its partner.
constexpr std::int64_t swing_offset(const Swing& swing, std::int64_t member, std::int32_t round) {
  return (member % 2 == 0 ? 1 : -1) * swing.direction * swing_distance(round);
}

constexpr std::int64_t swing_peer(const Swing& swing, std::int64_t member, std::int32_t round) {
  return modulo(member + swing_offset(swing, member, round), swing.size);
}

/// The half that a member keeps in a round, 0 or 1, of what it and its partner hold; the partner keeps the
/// other one.
constexpr std::int64_t swing_half(const Swing& swing, std::int64_t member, std::int32_t round) {
  const std::int32_t last = swing.num_rounds() - 1;
  if (round == last) return member & 1;
  const std::int64_t even = member % 2 == 0 ? member : swing_peer(swing, member, last);
  return even >> (round + 1) & 1;
}

}  // namespace hips::pattern
