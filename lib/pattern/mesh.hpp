#pragma once

#include <cstdint>

#include "lib/pattern/modulo.hpp"

namespace hips::pattern {

/// Mesh (diffuse + collect): every member sends its piece to, or for, every other one, in one step.
struct Mesh {
  std::int64_t size = 0;
};

constexpr std::int64_t num_rounds(const Mesh& mesh) {
  return mesh.size > 1 ? 1 : 0;
}

/// Whom member `index` serves as its `turn`-th, turn in 1..size-1: index+1, index+2, ... Rotated, so that at
/// any turn every member is served by one other and no receiver sees all senders at once.
constexpr std::int64_t peer(const Mesh& mesh, std::int64_t index, std::int64_t turn) {
  return modulo(index + turn, mesh.size);
}

/// From whom member `index` hears as its `turn`-th, if all go at one pace: index-1, index-2, ...
constexpr std::int64_t source(const Mesh& mesh, std::int64_t index, std::int64_t turn) {
  return modulo(index - turn, mesh.size);
}

}  // namespace hips::pattern
