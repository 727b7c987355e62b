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
  double bus_bw = 0;                      ///< GB/s: alg_bw * 2(n-1)/n, what each rank has to send at least
  std::optional<std::int64_t> num_wrong;  ///< over all ranks; none where nothing was compared
  std::optional<EachCall> each;           ///< where that was asked for
};

/// HiPS, another allreduce and plain copying in turns, so that whatever slows the machine slows all of them.
struct Compared {
  double host_us = 0;  ///< the other's time for a call
  double ratio = 0;    ///< its time by ours: median over the turns; above 1 HiPS is faster
  double ratio_low = 0, ratio_high = 0;
  double bound_us = 0;       ///< each rank copies as many bytes, all at once
  double bound_percent = 0;  ///< bound by ours: median over the turns
};

/// A size, type and operation to measure.
struct Case {
  std::uint64_t bytes = 0;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  [[nodiscard]] std::uint64_t count() const { return bytes / size_of(type); }
};

/// Of values in any order; the upper one of two in the middle. Needs one at least.
double median(std::vector<double> values);

/// Times a case; send and receive buffers belong to it and fit the largest size.
class Bench {
 public:
  /// `other` may be null: nothing to compare with.
  Bench(Group& group, Contender* other, const Options& options);

  /// Warms up before the first row, as nccl-tests does: at the largest and at the smallest size.
  void warm_up(const Case& largest, const Case& smallest);

  /// Collective. Timed calls follow one another; then, with new input, one call is compared.
  Measured run(const Case& test, bool in_place);

  /// Collective. Out of place; a mean over the calls, over the ranks as -a says.
  Overlap overlap(const Case& test);

  /// Collective. Out of place, in turns; `ours` gets the median of HiPS' times.
  Compared compare(const Case& test, Measured& ours);

 private:
  void call(const Case& test, bool in_place);
  /// us for each of -n calls, over the ranks as -a says.
  template <typename Call>
  double time(Call call);
  EachCall time_each(const Case& test, bool in_place);
  void rate(const Case& test, Measured& measured) const;

  Group& group_;
  Contender* other_;
  const Options& options_;
  // In memory of malloc() or, for -R, of hips_mem_alloc().
  std::vector<std::byte> ordinary_send_, ordinary_receive_;
  RegisteredBuffer<std::byte> registered_send_, registered_receive_;
  std::span<std::byte> send_, receive_;
  std::optional<Computation> computation_;  ///< where overlap is asked for
};

}  // namespace hips::perf
