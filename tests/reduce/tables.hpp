#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "lib/reduce/cpu.hpp"
#include "lib/reduce/kernels.hpp"
#include "tests/choices.hpp"

namespace hips::reduce::test {

using hips::test::runs_a_sample;
using hips::test::seed;

/// The kernel tables of the instruction sets that this machine has.
inline std::vector<const KernelTable*> tables() {
  std::vector<const KernelTable*> all = {kernels_baseline()};
#if defined(__x86_64__)
  if (runs_avx2()) all.push_back(kernels_avx2());
  if (runs_avx512()) all.push_back(kernels_avx512());
#endif
  return all;
}

}  // namespace hips::reduce::test
