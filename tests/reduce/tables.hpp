#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "lib/reduce/kernels.hpp"
#include "tests/choices.hpp"

namespace hips::reduce::test {

using hips::test::runs_a_sample;
using hips::test::seed;

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
