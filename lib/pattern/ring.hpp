#pragma once

#include <cstdint>

#include "lib/pattern/modulo.hpp"

namespace hips::pattern {

/// Ring (scatter + gather) of `size` members. In both directions piece j ends, reduced, at member j.
///
///   direction +1: data flows j -> j+1        direction -1: data flows j -> j-1, the mirror image
///
/// Piece j starts at the member after j and is reduced over j+1, j+2, ..., j on its way.
struct Ring {
  std::int64_t size = 0;
  std::int32_t direction = +1;
};

constexpr std::int64_t num_rounds(const Ring& ring) {
  return ring.size > 1 ? ring.size - 1 : 0;
}

/// The member that `index` sends to.
constexpr std::int64_t next(const Ring& ring, std::int64_t index) {
  return modulo(index + ring.direction, ring.size);
}

/// The member that `index` receives from.
constexpr std::int64_t prev(const Ring& ring, std::int64_t index) {
  return modulo(index - ring.direction, ring.size);
}

/// The piece that `index` sends in a round of the scatter (reduce-scatter), round in 0..size-2.
constexpr std::int64_t scatter_sends(const Ring& ring, std::int64_t index, std::int64_t round) {
  return modulo(index - ring.direction * (1 + round), ring.size);
}

/// The piece that `index` receives and reduces in a round of the scatter; in the last round its own.
constexpr std::int64_t scatter_receives(const Ring& ring, std::int64_t index, std::int64_t round) {
  return scatter_sends(ring, prev(ring, index), round);
}

/// The round of the scatter in which `index` sends `piece`, piece != index.
constexpr std::int64_t scatter_round_of(const Ring& ring, std::int64_t index, std::int64_t piece) {
  return modulo(ring.direction * (index - piece), ring.size) - 1;
}

/// The piece that `index` sends in a round of the gather (all-gather): first its own.
constexpr std::int64_t gather_sends(const Ring& ring, std::int64_t index, std::int64_t round) {
  return modulo(index - ring.direction * round, ring.size);
}

/// The piece that `index` receives in a round of the gather.
constexpr std::int64_t gather_receives(const Ring& ring, std::int64_t index, std::int64_t round) {
  return gather_sends(ring, prev(ring, index), round);
}

}  // namespace hips::pattern
