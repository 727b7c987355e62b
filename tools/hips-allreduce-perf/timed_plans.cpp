#include "tools/hips-allreduce-perf/timed_plans.hpp"

#include <cstdlib>

#include <fmt/format.h>

#include <hips/topology.hpp>

#include "lib/base/config/config.hpp"
#include "lib/base/wait/clock.hpp"
#include "lib/cost/select_table.hpp"
#include "lib/plan/builder.hpp"
#include "tools/hips-allreduce-perf/measure.hpp"

namespace hips::perf {
namespace {

/// The time of a call in us, of the slowest rank.
double time(PerfGroup& group, const PerfOptions& options, std::uint64_t count, std::vector<std::byte>& in,
            std::vector<std::byte>& out) {
  group.barrier();
  const SystemClock& clock = SystemClock::instance();
  const std::int64_t begin_ns = clock.now_ns();
  for (std::int32_t i = 0; i < options.iters; ++i)
    group.allreduce(in.data(), out.data(), count, options.types.front(), options.ops.front());
  const double mine_us = static_cast<double>(clock.now_ns() - begin_ns) / 1e3 / options.iters;
  return group.combine(mine_us, ReduceOp::kMax);
}

}  // namespace

TimedPlan automatic_plan(PerfLaunch& launch, const PerfOptions& options) {
  ::unsetenv("HIPS_SELECT_TABLE");
  const Config config = load_process_config().config;
  const std::pair<bool, const char*> named[] = {{config.algorithm.has_value(), "HIPS_ALGORITHM"},
                                                {config.pattern.has_value(), "HIPS_PATTERN"},
                                                {config.plan_file.has_value(), "HIPS_PLAN_FILE"}};
  for (const auto& [is_set, variable] : named)
    if (is_set)
      throw Error(Status::error(
          Code::kInvalidArgument,
          fmt::format(
              "{} names the plan, which would be timed instead of the choice of HiPS; unset it to tune",
              variable)));
  if (const auto& table = config.select_table)
    throw Error(Status::error(
        Code::kInvalidArgument,
        fmt::format("a settings file names the selection table {}, which would be timed instead "
                    "of the choice of HiPS; remove that line to tune",
                    *table)));
  return {std::string(cost::ChosenPlan::kAuto), "", std::make_unique<PerfGroup>(launch, options)};
}

std::vector<TimedPlan> timed_plans(PerfLaunch& launch, const PerfOptions& options) {
  std::vector<TimedPlan> plans;
  for (const plan::Algorithm& algorithm : plan::algorithms()) {
    const bool has_patterns = algorithm.name == "hips";
    for (const char* pattern :
         has_patterns ? std::vector<const char*>{"mesh", "ring"} : std::vector<const char*>{""}) {
      PerfOptions named = options;
      named.algorithm = algorithm.name;
      named.pattern = pattern;
      try {
        plans.push_back({named.algorithm, named.pattern, std::make_unique<PerfGroup>(launch, named)});
      } catch (const Error& error) {
        if (error.status().code != Code::kUnsupported) throw;
      }
    }
  }
  return plans;
}

std::vector<double> interleaved_times(std::vector<TimedPlan>& plans, const PerfOptions& options,
                                      std::uint64_t count, std::vector<std::byte>& in,
                                      std::vector<std::byte>& out) {
  std::vector<std::vector<double>> times(plans.size());
  for (std::int32_t round = -1; round < options.rounds; ++round) {
    for (std::size_t i = 0; i < plans.size(); ++i) {
      const double us = time(*plans[i].group, options, count, in, out);
      if (round >= 0) times[i].push_back(us);  // the first round opens connections
    }
  }
  std::vector<double> medians;
  for (const auto& of_one : times) medians.push_back(median(of_one));
  return medians;
}

std::string spec_of(const PerfOptions& options, int size) {
  const std::string named =
      !options.topology.empty() ? options.topology : load_process_config().config.topology.value_or("");
  if (named.empty()) return fmt::format("switch:{}", size);
  Topology topology = parse_topology(named);
  if (topology.num_ranks() != size && topology.ranks_per_server == 1 && size % topology.num_ranks() == 0)
    topology = parse_topology(fmt::format("{}/{}", named, size / topology.num_ranks()));
  return topology.spec;
}

}  // namespace hips::perf
