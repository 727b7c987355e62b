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

void correct_between_two(std::span<SmallCall> calls) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  double exchange = kNone, fastest = kNone;
  for (const SmallCall& call : calls) {
    if (call.seconds <= 0) continue;
    fastest = std::min(fastest, call.seconds);
    if (call.num_hops <= 1 && call.num_messages <= 1) exchange = std::min(exchange, call.seconds);
  }
  constexpr double kFarOff = 2.5;
  if (exchange > kFarOff * fastest) return;
  // Clearly slower, so that what vectors of a few bytes add does not decide.
  constexpr double kSlower = 1.1;
  for (SmallCall& call : calls)
    if (call.seconds > 0 && call.num_hops > 1) call.seconds = std::max(call.seconds, kSlower * exchange);
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
