#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "lib/reduce/kernels.hpp"

namespace hips::reduce::test {

inline std::uint64_t seed() {
  const char* text = std::getenv("HIPS_SEED");
  const std::uint64_t value = text != nullptr ? std::strtoull(text, nullptr, 10) : std::random_device{}();
  std::printf("HIPS_SEED=%llu\n", static_cast<unsigned long long>(value));
  return value;
}

/// Of the instruction sets that this machine has.
inline std::vector<const KernelTable*> tables() {
  std::vector<const KernelTable*> all = {kernels_baseline()};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("f16c"))
    all.push_back(kernels_avx2());
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd"))
    all.push_back(kernels_avx512());
#endif
  return all;
}

}  // namespace hips::reduce::test
