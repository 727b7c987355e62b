#pragma once

#include <cstdint>
#include <vector>

#include "tools/hips-allreduce-perf/group.hpp"

namespace hips::perf {

/// The overlap of a non-blocking call with computation, in the terms of osu_iallreduce.
struct Overlap {
  double overall_us = 0;  ///< start, computation with tests in between, wait
  double compute_us = 0;  ///< the computation alone
  double pure_us = 0;     ///< start and wait alone
  double percent = 0;     ///< hidden share of `pure_us`: 100 * (1 - (overall - compute) / pure), 0 to 100
};

/// Arithmetic that the compiler does not remove and that uses almost no memory. A unit takes about a
/// microsecond.
class Computation {
 public:
  /// Measures the speed of this core.
  Computation();
  /// Computes for about `us` microseconds of an idle core.
  void run(double us);

 private:
  void units(std::int64_t count);
  double units_per_us_ = 1;
  std::vector<double> values_;
};

}  // namespace hips::perf
