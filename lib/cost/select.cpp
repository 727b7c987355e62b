#include "lib/cost/select.hpp"

#include <algorithm>
#include <bit>

#include "lib/cost/estimate.hpp"
#include "lib/cost/fan_in.hpp"
#include "lib/plan/builder.hpp"

namespace hips::cost {
namespace {

/// How much longer a link takes with incast: half of what docs/roce.md shows on shaped links, where it is a
/// fifth, with two senders as with eight. Fabrics that pause or mark are between that and 0.
constexpr double kIncastShare = 0.1;
constexpr std::uint64_t kLeastBytes = 4, kMostBytes = std::uint64_t{1} << 32U;
/// Recursive doubling sends more bytes than necessary, so it is for vectors whose time is mostly latency.
constexpr std::uint64_t kMostDoublingBytes = 256U << 10U;
/// A plan must be better by more than the error of the model to replace an earlier one. Large vectors thus
/// keep their rings, whose messages only go to neighbours.
constexpr double kWorthIt = 0.99;
constexpr std::int64_t kElementBytes = 4;

std::int64_t num_sends(const Program& program) {
  return std::ranges::count_if(program.steps, [](const Step& step) { return step.op == StepOp::kSend; });
}

std::vector<Program> programs_of(const Topology& topology, const PlanBuilder& builder, std::int32_t server) {
  std::vector<Program> programs;
  const Rank first = server * topology.ranks_per_server;
  for (Rank rank = first; rank < first + topology.ranks_per_server; ++rank)
    programs.push_back(builder.program(rank));
  return programs;
}

/// Servers of which one is the busiest. If ranks outside a power of two are reduced into others first, the
/// first server has some of the former, the second may have some of the latter, and the last has none.
std::vector<std::int32_t> busiest_servers(const Topology& topology, const PlanBuilder& builder) {
  const auto last = static_cast<std::int32_t>(topology.num_servers()) - 1;
  if (builder.shape().algorithm == "hips" || last == 0) return {0};
  if (builder.shape().algorithm == "trees") {
    // No two servers have the same position in all trees.
    std::vector<std::int32_t> all;
    for (std::int32_t server = 0; server <= last; ++server) all.push_back(server);
    return all;
  }
  return last == 1 ? std::vector<std::int32_t>{0, 1} : std::vector<std::int32_t>{0, 1, last};
}

Candidate candidate_of(std::string name, const Topology& topology, std::unique_ptr<PlanBuilder> builder) {
  Candidate candidate;
  candidate.name = std::move(name);
  double most_seconds = -1;
  for (const std::int32_t server : busiest_servers(topology, *builder)) {
    auto programs = programs_of(topology, *builder, server);
    for (const Program& program : programs)
      candidate.num_messages = std::max(candidate.num_messages, num_sends(program));
    const double seconds =
        estimate(topology, builder->shape(), programs, {.count = 1 << 20, .element_bytes = kElementBytes})
            .bandwidth_seconds;
    if (seconds <= most_seconds) continue;
    most_seconds = seconds;
    candidate.programs = std::move(programs);
  }
  candidate.has_incast =
      std::ranges::any_of(candidate.programs, [](const Program& program) { return fan_in(program) > 1; });
  candidate.builder = std::move(builder);
  return candidate;
}

}  // namespace

double expected_seconds(Medium medium, const Work& work) {
  const double incast = medium.has_links && work.has_incast ? kIncastShare : 0;
  return work.latency_seconds + (1 + incast) * work.bandwidth_seconds +
         static_cast<double>(work.num_messages) * medium.message_seconds;
}

double expected_seconds(const Topology& topology, Medium medium, const Candidate& candidate,
                        std::uint64_t bytes) {
  const Volume volume{.count = static_cast<std::int64_t>(bytes) / kElementBytes,
                      .element_bytes = kElementBytes};
  const Cost cost = estimate(topology, candidate.builder->shape(), candidate.programs, volume);
  return expected_seconds(medium, {.latency_seconds = cost.latency_seconds,
                                   .bandwidth_seconds = cost.bandwidth_seconds,
                                   .num_messages = candidate.num_messages,
                                   .has_incast = candidate.has_incast});
}

const Candidate& Selection::of(std::uint64_t bytes) const {
  const auto choice =
      std::ranges::find_if(choices, [bytes](const Choice& each) { return bytes <= each.up_to_bytes; });
  return candidates[choice->candidate];
}

Result<std::vector<Candidate>> candidates(const Topology& topology) {
  if (Status sound = plan::check_groups(topology, "hips"); !sound.ok()) return fail(std::move(sound));
  std::vector<Candidate> candidates;
  auto hips = plan::make_builder(topology, {});
  const bool has_levels = hips && (*hips)->shape().algorithm != "trees";
  if (hips) candidates.push_back(candidate_of("hips", topology, std::move(*hips)));
  if (!has_levels) {
    // So there are no rings on levels. Trees of switches have one ring over all servers, also where they are too many for
    // trees.
    auto ring = plan::make_builder(topology, {.algorithm = "flat-ring"});
    const bool replaces_hips = ring && (*ring)->shape().neighbours_only;
    if (!hips && (hips.error().code != Code::kUnsupported || !replaces_hips)) return fail(hips.error());
    if (ring) candidates.push_back(candidate_of("flat-ring", topology, std::move(*ring)));
  } else if (candidates[0].has_incast) {
    auto rings =
        plan::make_builder(topology, {.patterns = {{.scatter = Pattern::kRing, .gather = Pattern::kRing}}});
    if (!rings) return fail(rings.error());
    candidates.push_back(candidate_of("hips, rings", topology, std::move(*rings)));
  }
  for (const char* const name : {"recursive-doubling", "halving-doubling"}) {
    auto builder = plan::make_builder(topology, {.algorithm = name});
    if (!builder) continue;
    candidates.push_back(candidate_of(name, topology, std::move(*builder)));
    if (Candidate& candidate = candidates.back(); !candidate.builder->shape().neighbours_only)
      candidate.excluded = "its messages would have to be relayed: not every pair of ranks is one hop apart";
  }
  return candidates;
}

std::size_t choose(const Topology& topology, Medium medium, std::span<const Candidate> candidates,
                   std::uint64_t bytes) {
  // A choice is for all sizes from one power of two to the next, and is decided at the larger one.
  bytes = std::bit_ceil(std::clamp(bytes, kLeastBytes, kMostBytes));
  // Of two with about the same cost the earlier one.
  std::size_t best = 0;
  double least = expected_seconds(topology, medium, candidates[0], bytes);
  for (std::size_t i = 1; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    if (!candidate.excluded.empty()) continue;
    if (candidate.builder->shape().algorithm == "recursive-doubling" && bytes > kMostDoublingBytes) continue;
    const double seconds = expected_seconds(topology, medium, candidate, bytes);
    if (seconds >= kWorthIt * least) continue;
    best = i;
    least = seconds;
  }
  return best;
}

Result<Selection> select(const Topology& topology, Medium medium) {
  Selection selection;
  selection.medium = medium;
  auto made = candidates(topology);
  if (!made) return fail(made.error());
  selection.candidates = std::move(*made);
  for (std::uint64_t bytes = kLeastBytes; bytes <= kMostBytes; bytes *= 2) {
    const std::size_t best = choose(topology, medium, selection.candidates, bytes);
    if (selection.choices.empty() || selection.choices.back().candidate != best)
      selection.choices.push_back({best, bytes});
    selection.choices.back().up_to_bytes = bytes;
  }
  selection.choices.back().up_to_bytes = UINT64_MAX;
  return selection;
}

}  // namespace hips::cost
