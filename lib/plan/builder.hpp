#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/base/result.hpp"

namespace hips::plan {

/// Bumped whenever a builder's output changes, so that ranks of different builds find out.
inline constexpr std::int32_t kBuilderVersion = 3;

/// The members of a group for each of which a rank's program has steps.
enum class StepsFor : std::uint8_t {
  kFew,    ///< as many as the logarithm of the ranks
  kLevel,  ///< all of a level
  kRanks,  ///< all ranks
};

/// The most of a group for which tools make programs; no cluster has so many on one switch.
inline constexpr std::int64_t kMostOfAGroup = std::int64_t{1} << 20U;

/// An algorithm as the registry knows it; docs/architecture.md says how to add one.
struct Algorithm {
  std::string_view name;         ///< "flat-ring"
  std::string_view description;  ///< one line
  std::string_view cost;         ///< one line: steps and bytes per rank
  Result<std::unique_ptr<PlanBuilder>> (*make)(const Topology& topology, const PlanRequest& request);
  StepsFor steps_for = StepsFor::kFew;
  /// Does it go around NICs whose link is down, and take parts of BCubes and Toruses? Others need all.
  bool takes_any_graph = false;
  /// Is it for rings of cables only?
  bool torus_only = false;
  /// Does it go round and round, as lines of cables do not allow?
  bool needs_cycle = false;
};

/// All algorithms, in the order in which they are listed to users.
std::span<const Algorithm> algorithms();

/// Makes the builder that `request.algorithm` names.
///
/// Errors   kInvalidArgument: no such algorithm (the message lists them), or a pattern list of the wrong
///          length. kUnsupported: the algorithm needs a link that the topology lacks; names the pair.
/// Example  auto builder = plan::make_builder(parse_topology("bcube:3,1"), {.algorithm = "hips"});
Result<std::unique_ptr<PlanBuilder>> make_builder(const Topology& topology, const PlanRequest& request);

/// Is a program of this algorithm one that a tool can make? A shape and a price by closed form are there for
/// any size; a program of hundreds of millions of steps takes all memory first.
///
/// Cost     none to speak of; makes nothing.
/// Errors   kUnsupported: a rank has steps for more than kMostOfAGroup others.
Status check_groups(const Topology& topology, std::string_view algorithm);

/// Programs of all ranks. Cost: num_ranks times one program; for tools and tests.
Plan build_all(const PlanBuilder& builder);

/// Reads "mesh", "mesh,ring", "ps:2", "mesh/ring,ring" (scatter/gather): the values of `--pattern`.
Result<std::vector<LevelPattern>> parse_patterns(std::string_view text);

}  // namespace hips::plan
