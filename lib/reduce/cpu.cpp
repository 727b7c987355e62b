#include "lib/reduce/cpu.hpp"

#if defined(__x86_64__)

#include <cpuid.h>

namespace hips::reduce {
namespace {

/// Conversion of float16. Not every compiler has a name for it in __builtin_cpu_supports().
bool has_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

}  // namespace

bool runs_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma") &&
         has_f16c();
}

bool runs_avx512() {
  return runs_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512cd");
}

}  // namespace hips::reduce

#else

namespace hips::reduce {

bool runs_avx2() {
  return false;
}

bool runs_avx512() {
  return false;
}

}  // namespace hips::reduce

#endif
