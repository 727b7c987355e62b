#pragma once

#include <cstdint>

#include "lib/pattern/modulo.hpp"

namespace hips::pattern {

/// Parameter server (push + pull): `num_leaders` of `size` members lead; leader u owns piece u.
///
/// The leaders are first, first+1, ... (mod size), so that lanes with different `first` load different
/// members. With all members leading and first == 0 it is the mesh.
struct Ps {
  std::int64_t size = 0;
  std::int64_t num_leaders = 0;
  std::int64_t first = 0;
};

constexpr std::int64_t num_rounds(const Ps& ps) {
  return ps.size > 1 ? 1 : 0;
}

constexpr bool leads(const Ps& ps, std::int64_t index) {
  return modulo(index - ps.first, ps.size) < ps.num_leaders;
}

/// The number of `index` among the leaders, 0..num_leaders-1. Requires leads(ps, index).
constexpr std::int64_t leader_index(const Ps& ps, std::int64_t index) {
  return modulo(index - ps.first, ps.size);
}

/// The member that is leader u.
constexpr std::int64_t leader(const Ps& ps, std::int64_t u) {
  return modulo(ps.first + u, ps.size);
}

}  // namespace hips::pattern
