#include "lib/cost/select.hpp"

#include <algorithm>

#include "lib/cost/estimate.hpp"
#include "lib/plan/builder.hpp"

namespace hips::cost {
namespace {

/// What a rank spends on a message beside the wire: posting it, its completion, its arrival and the credit
/// for it. Of the order of a microsecond on every NIC; where crossovers lie depends on it only linearly.
constexpr double kMessageSeconds = 0.5e-6;
constexpr std::uint64_t kLeastBytes = 4;
/// Larger vectors go by the plan that sends the fewest bytes, whatever the model says of latency.
constexpr std::uint64_t kMostBytes = 256U << 10U;
constexpr std::int64_t kElementBytes = 4;

Candidate candidate_of(std::unique_ptr<PlanBuilder> builder) {
  Candidate candidate;
  candidate.num_messages = std::ranges::count_if(builder->program(0).steps,
                                                 [](const Step& step) { return step.op == StepOp::kSend; });
  candidate.builder = std::move(builder);
  return candidate;
}

}  // namespace

double expected_seconds(const Topology& topology, const Candidate& candidate, std::uint64_t bytes) {
  const Volume volume{.count = static_cast<std::int64_t>(bytes) / kElementBytes,
                      .element_bytes = kElementBytes};
  return estimate_server_of(topology, *candidate.builder, 0, volume).seconds() +
         static_cast<double>(candidate.num_messages) * kMessageSeconds;
}

Result<Selection> select(const Topology& topology) {
  constexpr std::size_t kHips = 0, kSmall = 1;
  Selection selection;
  auto hips = plan::make_builder(topology, {});
  if (!hips) return fail(hips.error());
  selection.candidates.push_back(candidate_of(std::move(*hips)));
  if (auto small = plan::make_builder(topology, {.algorithm = "recursive-doubling"})) {
    selection.candidates.push_back(candidate_of(std::move(*small)));
    Candidate& candidate = selection.candidates[kSmall];
    if (!candidate.builder->shape().neighbours_only) {
      candidate.excluded = "its messages would have to be relayed: not every pair of ranks is one hop apart";
    }
    std::uint64_t up_to = 0;
    for (std::uint64_t bytes = kLeastBytes; candidate.excluded.empty() && bytes <= kMostBytes; bytes *= 2) {
      if (expected_seconds(topology, candidate, bytes) >=
          expected_seconds(topology, selection.candidates[kHips], bytes))
        break;
      up_to = bytes;
    }
    if (up_to > 0) selection.choices.push_back({kSmall, up_to});
  }
  selection.choices.push_back({kHips, UINT64_MAX});
  return selection;
}

}  // namespace hips::cost
