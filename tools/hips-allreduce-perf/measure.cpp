#include "tools/hips-allreduce-perf/measure.hpp"

#include <hips/hips.h>

#include <algorithm>
#include <span>
#include <utility>

#include "lib/base/wait/clock.hpp"
#include "lib/reduce/reduce.hpp"
#include "tools/hips-allreduce-perf/values.hpp"

namespace hips::perf {
namespace {

double over_ranks(PerfGroup& group, double value, Average average) {
  switch (average) {
    case Average::kRank0:
      return group.combine(group.rank() == 0 ? value : 0, ReduceOp::kSum);
    case Average::kAverage:
      return group.combine(value, ReduceOp::kSum) / group.size();
    case Average::kMin:
      return group.combine(value, ReduceOp::kMin);
    case Average::kMax:
      break;
  }
  return group.combine(value, ReduceOp::kMax);
}

}  // namespace

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Bench::Bench(PerfGroup& group, OtherAllreduce* other, const PerfOptions& options)
    : group_(group), other_(other), options_(options) {
  // Sizes are rounded down to whole elements, least for the smallest type, whose sizes are upper bounds.
  const auto sizes = options.sizes(DataType::kInt8);
  const std::size_t largest = *std::max_element(sizes.begin(), sizes.end());
  if (options.registered) {
    // At least one byte, because empty memory cannot be allocated.
    registered_send_ = allocate_registered<std::byte>(std::max<std::size_t>(largest, 1));
    registered_receive_ = allocate_registered<std::byte>(std::max<std::size_t>(largest, 1));
    send_ = registered_send_.span().first(largest);
    receive_ = registered_receive_.span().first(largest);
  } else {
    ordinary_send_.resize(largest);
    ordinary_receive_.resize(largest);
    send_ = ordinary_send_;
    receive_ = ordinary_receive_;
  }
  if (options.overlap) computation_.emplace();
}

void Bench::call(const Case& test, bool in_place) {
  group_.allreduce(in_place ? receive_.data() : send_.data(), receive_.data(), test.count(), test.type,
                   test.op);
}

void Bench::warm_up(const Case& largest, const Case& smallest) {
  for (const Case& test : {largest, smallest}) {
    for (std::int32_t i = 0; i < options_.warmup_iters; ++i) call(test, false);
  }
}

template <typename Call>
double Bench::time(Call call) {
  group_.barrier();
  const SystemClock& clock = SystemClock::instance();
  const std::int64_t begin_ns = clock.now_ns();
  for (std::int32_t i = 0; i < options_.iters; ++i) call();
  const double mine_us = static_cast<double>(clock.now_ns() - begin_ns) / 1e3 / options_.iters;
  return over_ranks(group_, mine_us, options_.average);
}

EachCall Bench::time_each(const Case& test, bool in_place) {
  const SystemClock& clock = SystemClock::instance();
  std::vector<double> times_us(static_cast<std::size_t>(options_.iters));
  for (double& time_us : times_us) {
    group_.barrier();
    const std::int64_t begin_ns = clock.now_ns();
    call(test, in_place);
    time_us = static_cast<double>(clock.now_ns() - begin_ns) / 1e3;
  }
  group_.combine(times_us, ReduceOp::kMax);
  return EachCall::of(std::move(times_us));
}

void Bench::rate(const Case& test, Measured& measured) const {
  measured.alg_bw = static_cast<double>(test.bytes) / (measured.time_us * 1e3);
  measured.bus_bw = measured.alg_bw * 2 * (group_.size() - 1) / group_.size();
}

Compared Bench::compare(const Case& test, Measured& ours) {
  std::vector<double> hips, other, bound, ratios, shares;
  const auto other_call = [&] {
    other_->allreduce(send_.data(), receive_.data(), test.count(), test.type, test.op);
  };
  const auto copy_call = [&] { reduce::copy_streaming(receive_.data(), send_.data(), test.bytes); };
  if (options_.compare != PerfOptions::Other::kNone) other_call();  // opens its connections
  for (std::int32_t round = 0; round < options_.rounds; ++round) {
    hips.push_back(time([&] { call(test, false); }));
    if (options_.compare != PerfOptions::Other::kNone) {
      other.push_back(time(other_call));
      ratios.push_back(other.back() / hips.back());
    }
    if (options_.bound) {
      bound.push_back(time(copy_call));
      shares.push_back(100 * bound.back() / hips.back());
    }
  }
  ours.time_us = median(hips);
  rate(test, ours);
  Compared compared;
  if (options_.compare != PerfOptions::Other::kNone) {
    compared.other_us = median(other);
    compared.ratio = median(ratios);
    compared.ratio_low = *std::ranges::min_element(ratios);
    compared.ratio_high = *std::ranges::max_element(ratios);
  }
  if (options_.bound) {
    compared.bound_us = median(bound);
    compared.bound_percent = median(shares);
  }
  return compared;
}

Overlap Bench::overlap(const Case& test) {
  const auto start = [&] {
    return group_.iallreduce(send_.data(), receive_.data(), test.count(), test.type, test.op);
  };
  Overlap overlap;
  overlap.pure_us = time([&] {
    hips_request_t request = start();
    expect_ok(hips_wait(&request));
  });
  // The computation takes as long as the call, the same on all ranks.
  const double compute_us = overlap.pure_us;
  overlap.compute_us = time([&] { computation_->run(compute_us); });
  const double part_us = compute_us / (options_.tests + 1);
  overlap.overall_us = time([&] {
    hips_request_t request = start();
    int done = 0;
    for (std::int32_t i = 0; i < options_.tests; ++i) {
      computation_->run(part_us);
      if (done == 0) expect_ok(hips_test(&request, &done));
    }
    computation_->run(part_us);
    expect_ok(hips_wait(&request));
  });
  const double exposed = overlap.overall_us - overlap.compute_us;
  overlap.percent = std::clamp(100 * (1 - exposed / overlap.pure_us), 0.0, 100.0);
  return overlap;
}

Measured Bench::run(const Case& test, bool in_place) {
  const std::span<std::byte> input = (in_place ? receive_ : send_).first(test.bytes);
  fill(input, test.type, test.op, group_.rank(), group_.size());
  Measured measured;
  measured.time_us = time([&] { call(test, in_place); });
  rate(test, measured);
  if (options_.each_call) measured.each = time_each(test, in_place);
  if (options_.check == 0) return measured;

  const std::span<std::byte> output = receive_.first(test.bytes);
  // The result of an earlier call must not be taken for that of this one.
  std::fill(output.begin(), output.end(), std::byte{0xa5});
  fill(input, test.type, test.op, group_.rank(), group_.size());
  call(test, in_place);
  measured.num_wrong = group_.sum(count_wrong(output, test.type, test.op, group_.size()));
  return measured;
}

}  // namespace hips::perf
