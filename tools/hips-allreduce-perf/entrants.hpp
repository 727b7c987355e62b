#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/hips-allreduce-perf/group.hpp"
#include "tools/hips-allreduce-perf/launch.hpp"
#include "tools/hips-allreduce-perf/options.hpp"

namespace hips::perf {

/// A plan that is timed in turns with others.
struct Entrant {
  std::string algorithm, pattern;
  std::unique_ptr<Group> group;
  [[nodiscard]] std::string name() const { return pattern.empty() ? algorithm : algorithm + " " + pattern; }
};

/// What HiPS does where no plan is named: plans by size, or the memory of each host and a plan between hosts.
/// Leaves HIPS_SELECT_TABLE out, for the rest of the process. Collective.
///
/// Errors   kInvalidArgument: a configuration file names a table.
Entrant automatic_entrant(Launch& launch, const Options& options);

/// All plans that run on the topology; the same on all ranks, as every rank gets the same error. Collective.
std::vector<Entrant> entrants_of(Launch& launch, const Options& options);

/// us for a call of each, by the slowest rank: the medians of `options.rounds` turns, after one that makes
/// connections. Collective.
std::vector<double> times_in_turns(std::vector<Entrant>& entrants, const Options& options,
                                   std::uint64_t count, std::vector<std::byte>& in,
                                   std::vector<std::byte>& out);

/// The topology that they run on, by its spec: as named, with as many ranks a server as there are, else one
/// switch.
std::string spec_of(const Options& options, int size);

}  // namespace hips::perf
