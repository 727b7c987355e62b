#include "lib/cost/select.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <utility>

#include "lib/cost/estimate.hpp"
#include "lib/cost/fan_in.hpp"
#include "lib/cost/loads.hpp"
#include "lib/plan/builder.hpp"
#include "topology/link_rates.hpp"
#include "topology/tiers.hpp"

namespace hips::cost {
namespace {

/// How much longer a link takes with incast: half of what docs/roce.md shows on shaped links, where it is a
/// fifth, with two senders as with eight. Fabrics that pause or mark are between that and 0.
constexpr double kIncastShare = 0.1;
constexpr std::uint64_t kLeastBytes = 4, kMostBytes = std::uint64_t{1} << 32U;
/// Plans that send whole vectors, and several of them, are for sizes whose time is mostly latency.
constexpr std::uint64_t kMostWholeBytes = 256U << 10U;
/// Trees beside rings: the model knows nothing of the start of their pipelines, which take longer than rings between these sizes and
/// those where both are at the bound.
constexpr std::uint64_t kMostTreeBytes = 256U << 10U, kMostTriedTreeBytes = 1U << 20U;
/// A plan must be better by more than the error of the model to replace an earlier one. Large vectors thus
/// keep their rings, whose messages only go to neighbours.
constexpr double kWorthIt = 0.99;
constexpr std::int64_t kElementBytes = 4;
/// The programs of trees have to be looked at for all servers, and a flat mesh connects every two.
constexpr std::int64_t kMostServersOfTrees = 64;
/// Of larger trees with slow cables above switches, not even the programs of the servers below one are looked at.
constexpr std::int64_t kMostServersOfUplinks = 1024;
/// Slow cables whose servers are looked at; of many, the others are hardly slower.
constexpr std::size_t kMostSlowCables = 8;
/// Trees are packed by a linear program, which takes a tenth of a second for 16 servers with 8 NICs each.
constexpr std::int64_t kMostNicsOfTrees = 40;

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

bool sends_whole_vectors(const Candidate& candidate) {
  const std::string& algorithm = candidate.builder->shape().algorithm;
  return algorithm.starts_with("recursive-") || algorithm == "binomial-tree";
}

/// Servers of which one is the busiest. If ranks outside a power of two are reduced into others first, the
/// first server has some of the former, the second may have some of the latter, and the last has none.
std::set<std::int32_t> busiest_servers_by_position(const Topology& topology, const PlanBuilder& builder) {
  const auto last = static_cast<std::int32_t>(topology.num_servers()) - 1;
  if (builder.shape().algorithm == "hips" || last == 0) return {0};
  const bool is_small = last < kMostServersOfTrees;
  const std::string& algorithm = builder.shape().algorithm;
  const bool differs_by_server = algorithm == "double-tree" || algorithm == "recursive-multiplying";
  if (algorithm == "trees" || (differs_by_server && is_small)) {
    // No two servers have the same position in all trees, or the same NICs and servers in their groups.
    std::set<std::int32_t> all;
    for (std::int32_t server = 0; server <= last; ++server) all.insert(server);
    return all;
  }
  return {0, 1, last};
}

/// The same and those behind the slowest cables.
std::set<std::int32_t> busiest_servers(const Topology& topology, const PlanBuilder& builder) {
  std::set<std::int32_t> servers = busiest_servers_by_position(topology, builder);
  // By their rate in times of that of the fastest NIC with this number.
  std::vector<std::pair<double, std::int64_t>> slow;
  const std::vector<double> nics = topology::rail_bandwidths(topology);
  for (const LinkOverride& cable : topology.overrides) {
    if (cable.server >= 0 && cable.up)
      slow.emplace_back(cable.bandwidth_bytes_per_s / nics[static_cast<std::size_t>(cable.rail)],
                        cable.server);
  }
  if (const GraphWiring* const wiring = topology.wiring.value.get()) {
    for (Rail rail = 0; rail < wiring->num_rails; ++rail) {
      std::vector<std::pair<double, std::int64_t>> rates;
      for (std::int64_t server = 0; server < wiring->num_servers; ++server) {
        const std::int64_t cable = wiring->cable[wiring->nic(server, rail)];
        if (cable < 0) continue;
        const GraphLink& link = wiring->graph.links[static_cast<std::size_t>(cable)];
        if (link.up) rates.emplace_back(link.bandwidth_bytes_per_s, server);
      }
      if (rates.empty()) continue;
      const double fastest = std::ranges::max(rates).first;
      for (const auto& [rate, server] : rates)
        if (rate < fastest) slow.emplace_back(rate / fastest, server);
    }
  }
  std::ranges::sort(slow);
  std::set<std::int64_t> behind;
  for (const auto& [share, server] : slow)
    if (behind.size() < kMostSlowCables && behind.insert(server).second)
      servers.insert(static_cast<std::int32_t>(server));
  return servers;
}

/// True if the cables above some switch are slower than all NICs below it together; of a graph, where that may be.
bool shares_slow_uplinks(const Topology& topology, const std::vector<topology::Tier>& tiers,
                         const topology::LinkRates& rates) {
  const std::vector<double> nics = topology::rail_bandwidths(topology);
  const double of_server = nics.empty() ? 0 : std::ranges::max(nics);
  for (std::size_t tier = 0; tier < tiers.size(); ++tier) {
    if (tiers[tier].servers_below == 0) return true;
    for (std::int64_t i = 0; i < tiers[tier].count; ++i) {
      const double below = static_cast<double>(tiers[tier].servers_below) * of_server;
      if (rates.tier(tier, static_cast<std::size_t>(i)) < below) return true;
    }
  }
  return false;
}

/// How many times longer the cables above switches take than `nic_seconds`, what the busiest NIC takes for `volume`; at least 1.
/// In large trees the servers below the first switch of the highest tier stand for all.
double uplinks_to_nics(const Topology& topology, const PlanBuilder& builder, Volume volume,
                       double nic_seconds) {
  const std::vector<topology::Tier> tiers = topology::tiers(topology);
  if (tiers.empty() || nic_seconds <= 0) return 1;
  const topology::LinkRates rates(topology, tiers);
  if (!shares_slow_uplinks(topology, tiers, rates)) return 1;
  const std::int64_t below = tiers.back().servers_below;
  const bool all = topology.num_servers() <= kMostServersOfTrees;
  if (!all && (below == 0 || below > kMostServersOfTrees || topology.num_servers() > kMostServersOfUplinks))
    return 1;
  LoadCounter counter(topology, builder.shape(), volume);
  for (std::int32_t server = 0; server < topology.num_servers(); ++server) {
    if (!all && topology.whole_server(server) / below != topology.whole_server(0) / below) continue;
    for (const Program& program : programs_of(topology, builder, server)) counter.add(program);
  }
  const Loads loads = counter.take();
  double most_seconds = nic_seconds;
  for (std::size_t tier = 0; tier < loads.total.tiers.size(); ++tier) {
    for (std::size_t i = 0; i < loads.total.tiers[tier].size(); ++i) {
      const Traffic& traffic = loads.total.tiers[tier][i];
      const std::int64_t bytes = all ? std::max(traffic.out_bytes, traffic.in_bytes) : traffic.out_bytes;
      const double rate = rates.tier(tier, i);
      if (bytes > 0 && rate > 0) most_seconds = std::max(most_seconds, static_cast<double>(bytes) / rate);
    }
  }
  return most_seconds / nic_seconds;
}

Candidate candidate_of(std::string name, const Topology& topology, std::unique_ptr<PlanBuilder> builder) {
  Candidate candidate;
  candidate.name = std::move(name);
  const Volume volume{.count = 1 << 20, .element_bytes = kElementBytes};
  double most_seconds = -1;
  for (const std::int32_t server : busiest_servers(topology, *builder)) {
    auto programs = programs_of(topology, *builder, server);
    for (const Program& program : programs)
      candidate.num_messages = std::max(candidate.num_messages, num_sends(program));
    const double seconds =
        estimate(topology, builder->shape(), programs, volume, BoundUse::kLeftOut).bandwidth_seconds;
    if (seconds <= most_seconds) continue;
    most_seconds = seconds;
    candidate.programs = std::move(programs);
  }
  candidate.has_incast =
      std::ranges::any_of(candidate.programs, [](const Program& program) { return fan_in(program) > 1; });
  candidate.uplinks_to_nics = uplinks_to_nics(topology, *builder, volume, most_seconds);
  candidate.builder = std::move(builder);
  return candidate;
}

}  // namespace

double expected_seconds(Medium medium, const Work& work) {
  const double incast = medium.has_links && work.has_incast ? kIncastShare : 0;
  return work.latency_seconds + (1 + incast) * work.bandwidth_seconds +
         static_cast<double>(work.num_messages) * medium.message_seconds;
}

namespace {

/// A message that servers pass on takes as many links as it has hops.
double middle_bandwidth_seconds(const Topology& topology, const Candidate& candidate) {
  const Volume volume{.count = kMiddleBytes / kElementBytes, .element_bytes = kElementBytes};
  return candidate.hops_of_a_message * candidate.uplinks_to_nics *
         estimate(topology, candidate.builder->shape(), candidate.programs, volume, BoundUse::kLeftOut)
             .bandwidth_seconds;
}

/// `bytes` and `middle` are what the links need for the call and for one of kMiddleBytes; 0: that was not tried. Buffers on the path can make a trial faster
/// than its links for a while, so those are a bound.
double seconds_as_tried(const TriedTimes& tried, double bytes, double middle) {
  const double small = tried.small_seconds;
  if (middle <= 0) return small + bytes;
  const double at_middle = std::max({tried.middle_seconds, small, middle});
  if (bytes >= middle) return at_middle + bytes - middle;
  // Waiting for messages and sending bytes overlap in part: less than their sum, more than the longer of both.
  return std::hypot(small, std::sqrt(at_middle * at_middle - small * small) * bytes / middle);
}

}  // namespace

double expected_seconds(const Topology& topology, Medium medium, const Candidate& candidate,
                        std::uint64_t bytes) {
  const Volume volume{.count = static_cast<std::int64_t>(bytes) / kElementBytes,
                      .element_bytes = kElementBytes};
  const Cost cost =
      estimate(topology, candidate.builder->shape(), candidate.programs, volume, BoundUse::kLeftOut);
  const Work work{
      .latency_seconds = cost.latency_seconds,
      .bandwidth_seconds = candidate.hops_of_a_message * candidate.uplinks_to_nics * cost.bandwidth_seconds,
      .num_messages = candidate.num_messages,
      .has_incast = candidate.has_incast};
  if (candidate.tried.small_seconds > 0) {
    const auto on_links = [&](double bandwidth_seconds) {
      return expected_seconds(medium,
                              {.bandwidth_seconds = bandwidth_seconds, .has_incast = work.has_incast});
    };
    const double middle =
        candidate.tried.middle_seconds > 0 ? middle_bandwidth_seconds(topology, candidate) : 0;
    return seconds_as_tried(candidate.tried, on_links(work.bandwidth_seconds), on_links(middle));
  }
  const double relaying = candidate.hops_of_a_message - 1;
  return expected_seconds(medium, work) +
         relaying * (work.latency_seconds + static_cast<double>(work.num_messages) * medium.message_seconds);
}

const Candidate& Selection::of(std::uint64_t bytes) const {
  const auto choice =
      std::ranges::find_if(choices, [bytes](const Choice& each) { return bytes <= each.up_to_bytes; });
  return candidates[choice->candidate];
}

namespace {

/// Adds a plan unless the topology has none of that kind, or the same one already.
void add_measured(const Topology& topology, std::string name, const PlanRequest& request,
                  std::vector<Candidate>& candidates) {
  auto builder = plan::make_builder(topology, request);
  if (!builder) return;
  const std::string& description = (*builder)->shape().description;
  const bool is_known = std::ranges::any_of(
      candidates, [&](const Candidate& one) { return one.builder->shape().description == description; });
  if (!is_known) candidates.push_back(candidate_of(std::move(name), topology, std::move(*builder)));
}

/// Of the routes from the first rank to others of its local rank, at most 64 of them.
double mean_hops(const Topology& topology) {
  constexpr Rank kMostRoutes = 64;
  const Rank step = std::max<Rank>(1, topology.num_servers() / kMostRoutes) * topology.ranks_per_server;
  double hops = 0, routes = 0;
  for (Rank other = step; other < topology.num_ranks(); other += step, ++routes)
    hops += static_cast<double>(topology.route(0, other).size());
  return routes > 0 ? std::max(1.0, hops / routes) : 1;
}

}  // namespace

Result<std::vector<Candidate>> candidates(const Topology& topology, bool measured) {
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
    if (Candidate& candidate = candidates.back(); !measured && !candidate.builder->shape().neighbours_only)
      candidate.excluded = "its messages may have to be relayed: not every pair of ranks is one hop apart";
  }
  if (!measured) return candidates;
  if (has_levels)
    add_measured(topology, "hips, meshes",
                 {.patterns = {{.scatter = Pattern::kMesh, .gather = Pattern::kMesh}}}, candidates);
  if (topology.num_servers() <= kMostServersOfTrees) {
    add_measured(topology, "recursive-multiplying", {.algorithm = "recursive-multiplying"}, candidates);
    add_measured(topology, "flat-mesh", {.algorithm = "flat-mesh"}, candidates);
    add_measured(topology, "binomial-tree", {.algorithm = "binomial-tree"}, candidates);
    add_measured(topology, "double-tree", {.algorithm = "double-tree"}, candidates);
    const std::int64_t nics = std::int64_t{topology.num_servers()} * std::max<Rail>(1, topology.num_rails);
    if (topology.ranks_per_server == 1 && nics <= kMostNicsOfTrees)
      add_measured(topology, "trees", {.algorithm = "trees"}, candidates);
  }
  for (Candidate& candidate : candidates)
    if (!candidate.builder->shape().neighbours_only) candidate.hops_of_a_message = mean_hops(topology);
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
    if (sends_whole_vectors(candidate) && bytes > kMostWholeBytes) continue;
    const bool is_tree = candidate.name == "trees" || candidate.name == "double-tree";
    if (is_tree && bytes > (candidate.tried.middle_seconds > 0 ? kMostTriedTreeBytes : kMostTreeBytes))
      continue;
    const double seconds = expected_seconds(topology, medium, candidate, bytes);
    if (!(seconds < kWorthIt * least)) continue;  // nor one whose time is no number
    best = i;
    least = seconds;
  }
  return best;
}

Result<Selection> select(const Topology& topology, Medium medium, std::span<const TriedTimes> tried) {
  Selection selection;
  selection.medium = medium;
  auto made = candidates(topology, medium.measured);
  if (!made) return fail(made.error());
  selection.candidates = std::move(*made);
  if (tried.size() == selection.candidates.size())
    for (std::size_t i = 0; i < tried.size(); ++i) selection.candidates[i].tried = tried[i];
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
