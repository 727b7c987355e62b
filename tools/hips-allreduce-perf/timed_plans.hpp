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

/// A plan that is timed alternately with others.
struct TimedPlan {
  std::string algorithm, pattern;
  std::unique_ptr<PerfGroup> group;
  [[nodiscard]] std::string name() const { return pattern.empty() ? algorithm : algorithm + " " + pattern; }
};

/// The default of HiPS if no plan is named: plans by size, or shared memory in each node and a plan between
/// nodes. Unsets HIPS_SELECT_TABLE for the rest of the process. Collective.
///
/// Errors   kInvalidArgument: a settings file names a table.
TimedPlan automatic_plan(PerfLaunch& launch, const PerfOptions& options);

/// All plans that run on the topology; the same on all ranks, because every rank gets the same errors.
/// Collective.
std::vector<TimedPlan> timed_plans(PerfLaunch& launch, const PerfOptions& options);

/// The time of a call in us for each plan, of the slowest rank: the median of `options.rounds` rounds over
/// all plans, after one that opens connections. Collective.
std::vector<double> interleaved_times(std::vector<TimedPlan>& plans, const PerfOptions& options,
                                      std::uint64_t count, std::vector<std::byte>& in,
                                      std::vector<std::byte>& out);

/// The spec of the topology that the plans run on: the named one, with several ranks per server if there are
/// more ranks than servers, else one switch.
std::string spec_of(const PerfOptions& options, int size);

}  // namespace hips::perf
