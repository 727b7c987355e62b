#pragma once

#include <cstdint>
#include <vector>

#include "tools/hips-allreduce-perf/group.hpp"

namespace hips::perf {

/// How much of a non-blocking call hides behind computation, as osu_iallreduce tells it.
struct Overlap {
  double overall_us = 0;  ///< start, computation with tests in between, wait
  double compute_us = 0;  ///< the same computation alone
  double pure_us = 0;     ///< start and wait alone
  double percent =
      0;  ///< of `pure_us` that the computation hid: 100 * (1 - (overall - compute) / pure), 0 to 100
};

/// Arithmetic that a compiler keeps and that touches no memory to speak of: a unit takes about a microsecond.
class Computation {
 public:
  Computation();
  /// Computes as long as this took when nothing else ran.
  void run(double us);

 private:
  void units(std::int64_t count);
  double units_per_us_ = 1;
  std::vector<double> values_;
};

}  // namespace hips::perf
