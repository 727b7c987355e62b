#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/base/result.hpp"
#include "lib/plan/plan_builder.hpp"

namespace hips::plan {

/// Incremented whenever a builder's output changes, so that ranks of different builds notice.
inline constexpr std::int32_t kBuilderVersion = 3;

/// How many peers a rank's program has steps for.
enum class StepsFor : std::uint8_t {
  kFew,    ///< the logarithm of the number of ranks
  kLevel,  ///< all members of a level's group
  kRanks,  ///< all ranks
};

/// The largest group for which tools make programs; no cluster has as many servers on one switch.
inline constexpr std::int64_t kMostOfAGroup = std::int64_t{1} << 20U;

/// An algorithm as the registry knows it; docs/extending.md says how to add one.
struct Algorithm {
  std::string_view name;         ///< "flat-ring"
  std::string_view description;  ///< one line
  std::string_view cost;         ///< one line: steps and bytes per rank
  Result<std::unique_ptr<PlanBuilder>> (*make)(const Topology& topology, const PlanRequest& request);
  StepsFor steps_for = StepsFor::kFew;
  /// Does it avoid NICs whose link is down, and plan for parts of BCubes and Toruses? Others need the whole.
  bool takes_any_graph = false;
  /// Does it need rings of cables?
  bool torus_only = false;
  /// Does it need a cycle of neighbours, which lines of cables do not have?
  bool needs_cycle = false;
};

/// All algorithms, in the order in which they are listed to users.
std::span<const Algorithm> algorithms();

/// Makes the builder for `request.algorithm`.
///
/// Errors   kInvalidArgument: unknown algorithm (the message lists them), or a pattern list of the wrong
///          length. kUnsupported: the algorithm needs a link that the topology does not have; names the pair.
/// Example  auto builder = plan::make_builder(parse_topology("bcube:3,1"), {.algorithm = "hips"});
Result<std::unique_ptr<PlanBuilder>> make_builder(const Topology& topology, const PlanRequest& request);

/// Checks that a tool can make a program of this algorithm. A shape, and a cost by closed form, exist for any
/// size, but a program of hundreds of millions of steps exhausts the memory.
///
/// Cost     negligible.
/// Errors   kUnsupported: a rank has steps for more than kMostOfAGroup peers.
Status check_groups(const Topology& topology, std::string_view algorithm);

/// Programs of all ranks. Cost: num_ranks times one program; for tools and tests.
Plan build_all(const PlanBuilder& builder);

/// Reads "mesh", "mesh,ring", "ps:2", "mesh/ring,ring" (scatter/gather): the values of `--pattern`.
Result<std::vector<LevelPattern>> parse_patterns(std::string_view text);

}  // namespace hips::plan
