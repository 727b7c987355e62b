#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <hips/memory.hpp>

#include "tools/hips-allreduce-perf/each_call.hpp"
#include "tools/hips-allreduce-perf/group.hpp"
#include "tools/hips-allreduce-perf/launch.hpp"
#include "tools/hips-allreduce-perf/options.hpp"
#include "tools/hips-allreduce-perf/overlap.hpp"

namespace hips::perf {

/// Half a row: out of place or in place.
struct Measured {
  double time_us = 0;
  double alg_bw = 0;                      ///< GB/s: size / time
  double bus_bw = 0;                      ///< GB/s: alg_bw * 2(n-1)/n, the least that each rank has to send
  std::optional<std::int64_t> num_wrong;  ///< over all ranks; nullopt if not checked
  std::optional<EachCall> each;           ///< with --iter_stats
};

/// HiPS compared with another allreduce and with plain copying, alternately, so that noise affects all of
/// them alike.
struct Compared {
  double other_us = 0;  ///< time of a call of the other allreduce
  double ratio = 0;     ///< its time divided by that of HiPS: median over the rounds; above 1 HiPS is faster
  double ratio_low = 0, ratio_high = 0;
  double bound_us = 0;       ///< time in which all ranks copy as many bytes at once
  double bound_percent = 0;  ///< bound divided by the time of HiPS: median over the rounds
};

/// A size, type and operation to measure.
struct Case {
  std::uint64_t bytes = 0;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  [[nodiscard]] std::uint64_t count() const { return bytes / size_of(type); }
};

/// The upper median of values in any order. Needs at least one.
double median(std::vector<double> values);

/// Times cases. It owns the send and receive buffers, which fit the largest size.
class Bench {
 public:
  /// `other` may be null.
  Bench(PerfGroup& group, OtherAllreduce* other, const PerfOptions& options);

  /// Warms up before the first row like nccl-tests, at the largest and at the smallest size.
  void warm_up(const Case& largest, const Case& smallest);

  /// Times consecutive calls, then checks the result of one call with new input. Collective.
  Measured run(const Case& test, bool in_place);

  /// Measures the overlap out of place: the mean over the calls, combined over the ranks by -a. Collective.
  Overlap overlap(const Case& test);

  /// Compares out of place, alternately; `ours` gets the median of the times of HiPS. Collective.
  Compared compare(const Case& test, Measured& ours);

 private:
  void call(const Case& test, bool in_place);
  /// The mean time in us of -n calls, combined over the ranks by -a.
  template <typename Call>
  double time(Call call);
  EachCall time_each(const Case& test, bool in_place);
  void rate(const Case& test, Measured& measured) const;

  PerfGroup& group_;
  OtherAllreduce* other_;
  const PerfOptions& options_;
  // Memory of malloc() or, with -R, of hips_mem_alloc().
  std::vector<std::byte> ordinary_send_, ordinary_receive_;
  RegisteredBuffer<std::byte> registered_send_, registered_receive_;
  std::span<std::byte> send_, receive_;
  std::optional<Computation> computation_;  ///< with --overlap
};

}  // namespace hips::perf
