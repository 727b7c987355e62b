#pragma once

#include <cstdint>

namespace hips::pattern {

/// The representative of `value` in 0..modulus-1, also for negative values.
constexpr std::int64_t modulo(std::int64_t value, std::int64_t modulus) {
  const std::int64_t rest = value % modulus;
  return rest < 0 ? rest + modulus : rest;
}

}  // namespace hips::pattern
