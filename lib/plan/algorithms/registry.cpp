#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/plan/algorithms/algorithms.hpp"
#include "lib/plan/builder.hpp"
#include "lib/plan/fabric/components.hpp"
#include "topology/levels.hpp"

namespace hips::plan {
namespace {

constexpr std::array kAlgorithms{
    Algorithm{"hips", "hierarchical synchronization: lanes of scatter and gather through the levels",
              "2 steps a level with mesh, 2(n-1) with ring; 2(N-1)/(N*K) of the vector per NIC direction",
              make_hips, StepsFor::kLevel, true},
    Algorithm{
        "flat-ps", "P of the ranks are parameter servers: they reduce the vectors and send the result back",
        "2 steps; 2(N-1)/P of the vector per direction of a leader's NIC", make_flat_ps, StepsFor::kRanks},
    Algorithm{"flat-mesh", "every rank reduces a piece from all others and sends it to all others",
              "2 steps; 2(N-1)/N of the vector per NIC direction where all are neighbours", make_flat_mesh,
              StepsFor::kRanks},
    Algorithm{"flat-ring", "one ring of neighbours, or one for each NIC that the topology allows",
              "2(N-1) steps; 2(N-1)/(N*R) of the vector per NIC direction, R rings", make_flat_ring,
              StepsFor::kRanks, false, false, true},
    Algorithm{"recursive-doubling", "whole vectors exchanged at distances 1, 2, 4, ...; for tiny vectors",
              "log2 N steps, 2 more unless N is a power of two; log2 N vectors per NIC direction",
              make_recursive_doubling},
    Algorithm{
        "recursive-multiplying", "whole vectors exchanged in groups of up to 4, 5 or 7; for tiny vectors",
        "a step for each factor of N, 2 more for factors above 7; factor - 1 vectors a step per NIC direction",
        make_recursive_multiplying},
    Algorithm{"halving-doubling", "recursive halving, then recursive doubling (Rabenseifner), for any N",
              "2 log2 N steps, 2 more unless N is a power of two; 2(N-1)/N of the vector per NIC direction",
              make_halving_doubling},
    Algorithm{"binomial-tree", "whole vectors up and down one tree, the fewest messages; for tiny vectors",
              "2 log2 N steps; log2 N vectors per NIC direction of rank 0", make_binomial_tree},
    Algorithm{"double-tree", "two binary trees, half of the vector up and down each",
              "2 log2 N steps, 2 more unless N is a power of two; up to 2 vectors per NIC direction",
              make_double_tree},
    Algorithm{
        "bucket", "rings along each dimension of a torus, in lanes over all ports",
        "2(n-1) steps for each side of n; 2(N-1)/(N*2d) of the vector per NIC direction with equal sides",
        make_bucket, StepsFor::kLevel, false, true},
    Algorithm{"swing", "halving and doubling on a torus, to alternating sides, in lanes over all ports",
              "2 log2 N steps for sides that are powers of two; relays beyond a side of 4", make_swing,
              StepsFor::kFew, false, true},
    Algorithm{"bine", "halving and doubling to alternating sides, for ranks whose placement is unknown",
              "2 log2 N steps, 2 more unless N is a power of two; 2(N-1)/N of the vector per NIC direction",
              make_bine},
    Algorithm{"trees", "spanning trees of neighbours, weighed by a linear program; for parts and slow links",
              "2 steps for each hop from a root; the busiest NIC carries as little as the best trees allow",
              make_trees, StepsFor::kFew, true},
};

/// Servers of a part of a BCube or a Torus reach only their neighbours, which need not have the next numbers.
Status check_whole(const Topology& topology, std::string_view algorithm) {
  if (topology.part.empty() || !topology.servers_relay) return Status::success();
  return Status::error(Code::kUnsupported,
                       fmt::format("plan: {} needs all servers of {}, or servers of a tree of switches; hips "
                                   "and trees plan for parts",
                                   algorithm, topology.name));
}

/// A ring of neighbours must get back to its first server.
Status check_cycle(const Topology& topology, const Algorithm& algorithm) {
  const bool relaying_graph = topology.family == Family::kGraph && topology.servers_relay;
  if (algorithm.needs_cycle && relaying_graph)
    return Status::error(
        Code::kUnsupported,
        fmt::format("plan: {} needs a ring of neighbours, and {} is of no family with a known "
                    "one; hips and trees plan for it",
                    algorithm.name, topology.name));
  if (!algorithm.needs_cycle || !topology::has_lines(topology)) return Status::success();
  return Status::error(
      Code::kUnsupported,
      fmt::format("plan: {} needs a ring of neighbours, and {} has lines, whose ends are not "
                  "connected; hips and trees plan for it",
                  algorithm.name, topology.name));
}

/// Most plans use every NIC and cannot avoid a cable that is down. If it is between switches, others remain,
/// or check_switches_joined() fails.
Status check_links_up(const Topology& topology) {
  for (const LinkOverride& link : topology.overrides) {
    if (link.up || link.server < 0) continue;
    const auto rank = static_cast<Rank>(link.server * topology.ranks_per_server);
    return Status::error(
        Code::kUnsupported,
        fmt::format("plan: the link of NIC {} of server {} ({}) is down, and this plan uses every NIC; "
                    "choose hips or trees, which avoid it",
                    link.rail, link.server, topology.address(rank)));
  }
  return Status::success();
}

/// The message names a pair of servers that are not neighbours: they differ in two digits, or by two places
/// in a ring.
Status must_relay(const Topology& topology, std::string_view algorithm) {
  std::vector<std::int64_t> digits(topology.levels.size(), 0);
  std::int32_t differing = 0;
  for (std::size_t l = 0; l < digits.size() && differing < 2; ++l) {
    const Level& level = topology.levels[l];
    if (level.kind == LevelKind::kNode) continue;
    const bool far = (level.kind == LevelKind::kRing && level.radix > 3) ||
                     (level.kind == LevelKind::kLine && level.radix > 2);
    digits[l] = far ? 2 : 1;
    differing += far ? 2 : 1;
  }
  return Status::error(
      Code::kUnsupported,
      fmt::format("plan: {} sends between servers that are not neighbours, such as {} and {}, and the "
                  "topology says that no server relays; hips and flat-ring use neighbours only",
                  algorithm, topology.address(0), topology.address(topology.rank_of(digits))));
}

}  // namespace

std::span<const Algorithm> algorithms() {
  return kAlgorithms;
}

Result<std::unique_ptr<PlanBuilder>> make_builder(const Topology& topology, const PlanRequest& request) {
  std::vector<std::string_view> names;
  for (const Algorithm& algorithm : kAlgorithms) {
    if (algorithm.name == request.algorithm) {
      if (Status joined = check_switches_joined(topology); !joined.ok()) return fail(std::move(joined));
      if (!algorithm.takes_any_graph) {
        if (Status usable = check_links_up(topology); !usable.ok()) return fail(std::move(usable));
        if (Status usable = check_cycle(topology, algorithm); !usable.ok()) return fail(std::move(usable));
        if (Status usable = check_whole(topology, algorithm.name); !usable.ok())
          return fail(std::move(usable));
      }
      auto builder = algorithm.make(topology, request);
      if (builder && topology.relay_off && !(*builder)->shape().neighbours_only)
        return fail(must_relay(topology, request.algorithm));
      return builder;
    }
    names.push_back(algorithm.name);
  }
  return fail(Code::kInvalidArgument, fmt::format("unknown algorithm \"{}\"; expected one of {}",
                                                  request.algorithm, fmt::join(names, ", ")));
}

Status check_groups(const Topology& topology, std::string_view algorithm) {
  const auto* const known = std::ranges::find(kAlgorithms, algorithm, &Algorithm::name);
  // make_builder() reports unknown algorithms.
  if (known == kAlgorithms.end()) return Status::success();
  std::int64_t largest = 0;
  if (known->steps_for == StepsFor::kRanks) largest = topology.num_ranks();
  if (known->steps_for == StepsFor::kLevel)
    for (const Level& level : topology.levels) largest = std::max<std::int64_t>(largest, level.radix);
  if (largest <= kMostOfAGroup) return Status::success();
  return Status::error(
      Code::kUnsupported,
      fmt::format("plan: {} on {} has groups of {} ranks, each with steps for all others (valid: up to {}); "
                  "halving-doubling has few steps for any number of ranks",
                  algorithm, topology.name, largest, kMostOfAGroup));
}

Plan build_all(const PlanBuilder& builder) {
  Plan plan;
  plan.shape = builder.shape();
  plan.programs.reserve(plan.shape.num_ranks);
  for (Rank rank = 0; rank < plan.shape.num_ranks; ++rank) plan.programs.push_back(builder.program(rank));
  return plan;
}

}  // namespace hips::plan
