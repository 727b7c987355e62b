#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tools/hips-allreduce-perf/group.hpp"
#include "tools/hips-allreduce-perf/options.hpp"

namespace hips::perf {

/// Half a row: out of place or in place.
struct Measured {
  double time_us = 0;
  double alg_bw = 0;                      ///< GB/s: size / time
  double bus_bw = 0;                      ///< GB/s: alg_bw * 2(n-1)/n, what each rank has to send at least
  std::optional<std::int64_t> num_wrong;  ///< over all ranks; none where nothing was compared
};

/// A size, type and operation to measure.
struct Case {
  std::uint64_t bytes = 0;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  [[nodiscard]] std::uint64_t count() const { return bytes / size_of(type); }
};

/// Times a case; send and receive buffers belong to it and fit the largest size.
class Bench {
 public:
  Bench(Group& group, const Options& options);

  /// Warms up before the first row, as nccl-tests does: at the largest and at the smallest size.
  void warm_up(const Case& largest, const Case& smallest);

  /// Collective. Timed calls follow one another; then, with new input, one call is compared.
  Measured run(const Case& test, bool in_place);

 private:
  void call(const Case& test, bool in_place);

  Group& group_;
  const Options& options_;
  std::vector<std::byte> send_, receive_;
};

}  // namespace hips::perf
