#include "lib/cost/constants.hpp"

#include <algorithm>
#include <limits>

#include "lib/cost/estimate.hpp"
#include "lib/cost/fit.hpp"

namespace hips::cost {

SmallCall small_call(const Topology& topology, const Candidate& candidate) {
  const Cost cost =
      estimate(topology, candidate.builder->shape(), candidate.programs, {.count = 1, .element_bytes = 4});
  return {.num_hops = static_cast<double>(cost.num_steps) * candidate.hops_of_a_message,
          .num_messages = static_cast<double>(candidate.num_messages) * candidate.hops_of_a_message};
}

void correct_small(std::span<SmallCall> calls, std::size_t num_ranks) {
  // Every rank but one has to be heard and to hear.
  const double least_messages = 2.0 * static_cast<double>(num_ranks - 1);
  const SmallCall* best = nullptr;
  double least_hops = std::numeric_limits<double>::infinity();
  for (const SmallCall& call : calls) {
    if (call.seconds <= 0) continue;
    least_hops = std::min(least_hops, call.num_hops);
    if (call.num_messages * static_cast<double>(num_ranks) > least_messages) continue;
    if (best == nullptr || call.num_hops < best->num_hops ||
        (call.num_hops == best->num_hops && call.seconds < best->seconds))
      best = &call;
  }
  if (best == nullptr || best->num_hops > least_hops) return;
  // Clearly slower, so that the order of the plans does not decide.
  constexpr double kSlower = 1.1;
  const double seconds = best->seconds, hops = best->num_hops;
  for (SmallCall& call : calls)
    if (call.seconds > 0 && call.num_hops > hops) call.seconds = std::max(call.seconds, kSlower * seconds);
}

Constants fit_small(std::span<const SmallCall> calls) {
  // Rows h*x + m*y = 1, divided by the time, so that errors are relative.
  double hh = 0, hm = 0, mm = 0, h1 = 0, m1 = 0;
  for (const SmallCall& call : calls) {
    const double h = call.num_hops / call.seconds, m = call.num_messages / call.seconds;
    hh += h * h, hm += h * m, mm += m * m, h1 += h, m1 += m;
  }
  const double determinant = hh * mm - hm * hm;
  constexpr double kDependent = 1e-6;
  Constants constants;
  if (determinant <= kDependent * hh * mm) {
    // One proportion only: half of the time each.
    if (hh > 0) constants.hop_seconds = h1 / hh / 2;
    if (mm > 0) constants.message_seconds = m1 / mm / 2;
    return constants;
  }
  constants.hop_seconds = (h1 * mm - m1 * hm) / determinant;
  constants.message_seconds = (m1 * hh - h1 * hm) / determinant;
  if (constants.hop_seconds < 0) {
    constants.hop_seconds = 0;
    constants.message_seconds = m1 / mm;
  }
  if (constants.message_seconds < 0) {
    constants.hop_seconds = h1 / hh;
    constants.message_seconds = 0;
  }
  return constants;
}

Topology with_constants(const Topology& topology, const Constants& constants) {
  return fitted(topology,
                {.hop_seconds = constants.hop_seconds, .seconds_per_byte = 1 / constants.bytes_per_s});
}

Result<Selection> select(const Topology& topology, const Medium& medium, const Constants& constants) {
  Medium measured = medium;
  measured.message_seconds = constants.message_seconds;
  measured.measured = true;
  return select(with_constants(topology, constants), measured,
                topology.spec == constants.spec ? constants.tried : std::vector<TriedTimes>());
}

}  // namespace hips::cost
