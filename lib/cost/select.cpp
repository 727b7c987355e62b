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

std::int64_t num_messages(const Program& program) {
  return std::ranges::count_if(program.steps, [](const Step& step) { return step.op == StepOp::kSend; });
}

double seconds(const Topology& topology, const PlanBuilder& builder, std::int64_t messages,
               std::uint64_t bytes) {
  const Cost cost = estimate_server_of(topology, builder, 0,
                                       {.count = static_cast<std::int64_t>(bytes / 4), .element_bytes = 4});
  return cost.seconds() + static_cast<double>(messages) * kMessageSeconds;
}

}  // namespace

Result<Selection> select(const Topology& topology) {
  auto own = plan::make_builder(topology, {});
  if (!own) return fail(own.error());
  Selection selection;
  auto small = plan::make_builder(topology, {.algorithm = "recursive-doubling"});
  if (small && (*small)->shape().neighbours_only) {
    const std::int64_t own_messages = num_messages((*own)->program(0));
    const std::int64_t small_messages = num_messages((*small)->program(0));
    std::uint64_t up_to = 0;
    for (std::uint64_t bytes = kLeastBytes; bytes <= kMostBytes; bytes *= 2) {
      if (seconds(topology, **small, small_messages, bytes) >= seconds(topology, **own, own_messages, bytes))
        break;
      up_to = bytes;
    }
    if (up_to > 0) selection.choices.push_back({std::move(*small), up_to});
  }
  selection.choices.push_back({std::move(*own), UINT64_MAX});
  return selection;
}

}  // namespace hips::cost
