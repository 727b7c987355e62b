#pragma once

#include <cstdint>

#include "lib/pattern/modulo.hpp"

namespace hips::pattern {

/// Mesh (diffuse + collect): in one step every member sends a piece to every other one. In the scatter that
/// is the receiver's piece, in the gather the sender's own.
struct Mesh {
  std::int64_t size = 0;
};

constexpr std::int64_t num_rounds(const Mesh& mesh) {
  return mesh.size > 1 ? 1 : 0;
}

/// The n-th member that `index` sends to, n in 1..size-1: index+1, index+2, ... The order is rotated, so that
/// the n-th message of all members goes to different receivers and no receiver gets all messages at once.
constexpr std::int64_t peer(const Mesh& mesh, std::int64_t index, std::int64_t n) {
  return modulo(index + n, mesh.size);
}

/// The n-th member that `index` receives from, if all send at the same pace: index-1, index-2, ...
constexpr std::int64_t source(const Mesh& mesh, std::int64_t index, std::int64_t n) {
  return modulo(index - n, mesh.size);
}

}  // namespace hips::pattern
