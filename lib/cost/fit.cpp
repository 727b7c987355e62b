#include "lib/cost/fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lib/cost/estimate.hpp"
#include "lib/cost/fan_in.hpp"
#include "topology/graph_wiring.hpp"
#include "topology/tiers.hpp"

namespace hips::cost {
namespace {

constexpr std::size_t kUnknowns = 3;
using Row = std::array<double, kUnknowns>;

/// Columns that differ by less than this share of their length are linearly dependent.
constexpr double kDependent = 1e-6;
/// The share of the remaining squares that one more unknown must explain.
constexpr double kWorthAnUnknown = 1e-3;

double fastest_nic(const Topology& topology) {
  double fastest = 0;
  for (const double rate : topology::rail_bandwidths(topology)) fastest = std::max(fastest, rate);
  return fastest;
}

double three_digits(double value) {
  if (!(value > 0)) return 0;
  const double unit = std::pow(10, std::floor(std::log10(value)) - 2);
  return std::round(value / unit) * unit;
}

/// Least squares over a set of unknowns, by the normal equations. None if columns are linearly dependent.
std::optional<Row> solve(const std::array<Row, kUnknowns>& gram, const Row& right, unsigned set) {
  std::array<Row, kUnknowns> a = gram;
  Row b = right, x{};
  for (std::size_t i = 0; i < kUnknowns; ++i) {
    if ((set >> i & 1U) == 0) continue;
    if (!(gram[i][i] > 0) || a[i][i] < kDependent * gram[i][i]) return std::nullopt;
    for (std::size_t j = i + 1; j < kUnknowns; ++j) {
      if ((set >> j & 1U) == 0) continue;
      const double share = a[j][i] / a[i][i];
      for (std::size_t k = i; k < kUnknowns; ++k) a[j][k] -= share * a[i][k];
      b[j] -= share * b[i];
    }
  }
  for (std::size_t i = kUnknowns; i-- > 0;) {
    if ((set >> i & 1U) == 0) continue;
    double sum = b[i];
    for (std::size_t k = i + 1; k < kUnknowns; ++k) sum -= (set >> k & 1U) == 0 ? 0 : a[i][k] * x[k];
    x[i] = sum / a[i][i];
  }
  return x;
}

}  // namespace

FitSample fit_sample(const Topology& topology, Medium medium, const PlanBuilder& builder, Volume volume,
                     double seconds) {
  const Cost cost = estimate_all(topology, builder, volume);
  // Messages of the busiest rank, and whether there is incast, as select() counts them.
  Work work{.num_messages = 0, .has_incast = false};
  for (Rank rank = 0; rank < builder.shape().num_ranks; ++rank) {
    const Program program = builder.program(rank);
    work.num_messages = std::max<std::int64_t>(
        work.num_messages,
        std::ranges::count_if(program.steps, [](const Step& step) { return step.op == StepOp::kSend; }));
    work.has_incast = work.has_incast || fan_in(program) > 1;
  }
  const Work wire{.bandwidth_seconds = cost.bandwidth_seconds * fastest_nic(topology),
                  .has_incast = work.has_incast};
  return {.seconds = seconds,
          .fixed_seconds = expected_seconds(medium, work),
          .num_hops = static_cast<double>(cost.num_steps),
          .link_bytes = expected_seconds(medium, wire),
          .reduced_bytes = static_cast<double>(cost.loads.reduced_bytes)};
}

Result<Fit> fit(std::span<const FitSample> samples, bool with_gamma) {
  if (samples.size() < 2)
    return fail(Code::kInvalidArgument,
                fmt::format("fit: {} measured times (valid: 2 or more); measure two sizes", samples.size()));
  std::vector<Row> rows;
  std::vector<double> wanted;
  for (const FitSample& sample : samples) {
    const double weight = 1 / sample.seconds;  // absolute errors would let the largest size decide alone
    rows.push_back({sample.num_hops * weight, sample.link_bytes * weight, sample.reduced_bytes * weight});
    wanted.push_back(std::max(sample.seconds - sample.fixed_seconds, 0.0) * weight);
  }
  std::array<Row, kUnknowns> gram{};
  Row right{};
  for (std::size_t s = 0; s < rows.size(); ++s) {
    for (std::size_t i = 0; i < kUnknowns; ++i) {
      for (std::size_t j = 0; j < kUnknowns; ++j) gram[i][j] += rows[s][i] * rows[s][j];
      right[i] += rows[s][i] * wanted[s];
    }
  }
  const auto error_of = [&](const Row& x, std::size_t s) {
    double error = -wanted[s];
    for (std::size_t i = 0; i < kUnknowns; ++i) error += rows[s][i] * x[i];
    return error;
  };
  // There are few unknowns, so all sets of them are tried: the least squares without a negative value win.
  // Gamma is tried only with beta, of which it may be a part. A set with one more unknown must be worth it.
  Row best{};
  double least = 0;
  for (const double each : wanted) least += each * each;
  for (const unsigned set : {1U, 2U, 3U, 6U, 7U}) {
    if (!with_gamma && set > 3) break;
    const auto x = solve(gram, right, set);
    if (!x || std::ranges::any_of(*x, [](double value) { return value < 0; })) continue;
    double squares = 0;
    for (std::size_t s = 0; s < rows.size(); ++s) squares += error_of(*x, s) * error_of(*x, s);
    if (squares >= least * (1 - kWorthAnUnknown)) continue;
    least = squares;
    best = *x;
  }
  if (!(best[1] > 0)) {
    return fail(Code::kInvalidArgument,
                "fit: the times do not grow with the bytes on the wire, so they do not determine the rate; "
                "measure larger sizes, such as -e 64M");
  }
  Fit made{.hop_seconds = best[0], .seconds_per_byte = best[1], .reduce_seconds_per_byte = best[2]};
  made.has_gamma = with_gamma && solve(gram, right, 6U).has_value();
  std::vector<double> errors;
  for (std::size_t s = 0; s < rows.size(); ++s) errors.push_back(std::abs(error_of(best, s)));
  std::ranges::sort(errors);
  made.median_error = errors[errors.size() / 2];
  return made;
}

Topology fitted(Topology topology, const Fit& fit) {
  const double scale = 1 / fit.seconds_per_byte / fastest_nic(topology);
  const auto rate = [&](double before) {
    // Rates are rounded in bits per second, the unit in which they are written.
    return std::clamp(three_digits(before * scale * 8), 1e6, 1e14) / 8;
  };
  for (Level& level : topology.levels) {
    if (level.kind == LevelKind::kNode) continue;
    level.bandwidth_bytes_per_s = rate(level.bandwidth_bytes_per_s);
    level.latency_ns = std::min(three_digits(fit.hop_seconds * 1e9), 1e10);
  }
  for (LinkOverride& link : topology.overrides) {
    if (link.up) link.bandwidth_bytes_per_s = rate(link.bandwidth_bytes_per_s);
  }
  if (topology.wiring.value != nullptr) {
    auto wiring = std::make_shared<GraphWiring>(*topology.wiring.value);
    for (GraphLink& link : wiring->graph.links) {
      if (!link.up) continue;
      link.bandwidth_bytes_per_s = rate(link.bandwidth_bytes_per_s);
      link.latency_ns = topology.levels.front().latency_ns;
    }
    topology.wiring.value = std::move(wiring);
  }
  return topology;
}

}  // namespace hips::cost
