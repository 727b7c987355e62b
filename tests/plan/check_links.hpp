#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include <fmt/format.h>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "topology/walk.hpp"

namespace hips::tests {

/// Checks that all messages leave and arrive by NICs that join their ranks, in one hop if the plan claims so.
/// Returns "" or the first error.
inline std::string check_links(const Topology& topology, const Plan& plan) {
  using Name = std::tuple<Rank, Rank, std::int32_t, std::int32_t, std::int32_t>;
  std::map<Name, Rail> arrivals;
  for (const Program& program : plan.programs) {
    for (const Step& step : program.steps) {
      for (const Source& source : program.sources_of(step)) {
        if (source.kind != Source::Kind::kMessage) continue;
        arrivals[{source.peer, program.rank, step.lane, step.stage, step.round}] = source.rail;
      }
    }
  }
  for (const Program& program : plan.programs) {
    for (const Step& step : program.steps) {
      if (step.op != StepOp::kSend) continue;
      Rail first = kNoRail, last = kNoRail;
      int hops = 0;
      topology::walk(topology, program.rank, step.peer, step.rail, [&](const Hop& hop) {
        if (hops++ == 0) first = hop.out;
        last = hop.in;
      });
      const std::string message = fmt::format("{} -> {}, lane {}, stage {}, round {}", program.rank,
                                              step.peer, step.lane, step.stage, step.round);
      if (first != step.rail)
        return fmt::format("{}: leaves by {} but the way is by {}", message, step.rail, first);
      const Rail in = arrivals.at({program.rank, step.peer, step.lane, step.stage, step.round});
      if (last != in) return fmt::format("{}: taken from {} but comes by {}", message, in, last);
      if (plan.shape.neighbours_only && hops != 1) return fmt::format("{}: {} hops", message, hops);
    }
  }
  return {};
}

}  // namespace hips::tests
