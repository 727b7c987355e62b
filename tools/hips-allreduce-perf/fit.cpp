#include "tools/hips-allreduce-perf/fit.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "lib/cost/fit.hpp"
#include "lib/plan/builder.hpp"
#include "tools/hips-allreduce-perf/timed_plans.hpp"
#include "tools/hips-allreduce-perf/values.hpp"
#include "topology/formats/topology_file.hpp"

namespace hips::perf {
namespace {

/// The builder of a plan for the model; null if servers would relay: the model attributes that to links, an
/// emulation to the CPU.
std::unique_ptr<PlanBuilder> builder_of(const Topology& topology, const TimedPlan& timed) {
  PlanRequest request{.algorithm = timed.algorithm};
  if (!timed.pattern.empty()) request.patterns = value_or_throw(plan::parse_patterns(timed.pattern));
  auto builder = plan::make_builder(topology, request);
  return builder && (*builder)->shape().neighbours_only ? std::move(*builder) : nullptr;
}

/// The topology file. `model` has the constants for the file, without a term for reducing; `three` has that
/// term, too.
std::string text_of(const topology::TopologyFile& measured, const cost::Fit& model, const cost::Fit& three) {
  topology::TopologyFile file = measured;
  file.topology = cost::fitted(file.topology, model);
  const std::string gamma = !three.has_gamma ? "unknown: only one kind of plan ran"
                            : !(three.reduce_seconds_per_byte > 0)
                                ? "hidden by the network"
                                : fmt::format("{:.3g} GB/s", 1e-9 / three.reduce_seconds_per_byte);
  return fmt::format(
      "# with a reduction term: alpha {:.3g} us per hop, beta {:.3g} GB/s of the fastest NIC, gamma {}; "
      "median "
      "error\n"
      "# {:.0f} %. Without it, as hips plan and hips compare use this file (-t THIS.yaml), median error "
      "{:.0f} "
      "%.\n{}",
      three.hop_seconds * 1e6, 1e-9 / three.seconds_per_byte, gamma, three.median_error * 100,
      model.median_error * 100, value_or_throw(topology::topology_file_text(file, false)));
}

}  // namespace

void fit(PerfLaunch& launch, const PerfOptions& options) {
  std::vector<TimedPlan> timed = timed_plans(launch, options);
  PerfGroup& first = *timed.front().group;
  const DataType type = options.types.front();
  const bool reports = first.rank() == 0;
  const auto file = value_or_throw(topology::load_topology(spec_of(options, first.size())));
  std::vector<std::unique_ptr<PlanBuilder>> builders;
  for (const TimedPlan& plan : timed) builders.push_back(builder_of(file.topology, plan));
  const std::vector<std::uint64_t> sizes = options.distinct_sizes(type);
  std::vector<std::byte> in(sizes.back()), out(sizes.back());
  fill(in, type, options.ops.front(), first.rank(), first.size());
  if (reports) {
    fmt::print("# hips-allreduce-perf --fit: {} {} on {}, us, medians of {} rounds of {} calls\n",
               to_string(options.ops.front()), type_name(type), file.topology.spec, options.rounds,
               options.iters);
  }
  // Ranks of one node share no NIC, so that there is no incast.
  const auto processes = first.processes();
  const bool one_node = std::ranges::all_of(
      processes, [&](const RankProcess& process) { return process.host == processes.front().host; });
  const cost::Medium medium = one_node ? cost::Medium::kMemory : cost::Medium::kWires;
  std::vector<cost::FitSample> samples;
  for (const std::uint64_t bytes : sizes) {
    const std::uint64_t count = bytes / size_of(type);
    const std::vector<double> medians = interleaved_times(timed, options, count, in, out);
    std::string row = fmt::format("# {:>11}", bytes);
    for (std::size_t i = 0; i < timed.size(); ++i) {
      if (builders[i] == nullptr) continue;
      row += fmt::format("  {} {:.2f}", timed[i].name(), medians[i]);
      const cost::Volume volume{static_cast<std::int64_t>(count), static_cast<std::int64_t>(size_of(type))};
      samples.push_back(cost::fit_sample(file.topology, medium, *builders[i], volume, medians[i] * 1e-6));
    }
    if (reports) {
      fmt::print("{}\n", row);
      std::fflush(stdout);
    }
  }
  // Every rank has the same times, so that all get the same error.
  const cost::Fit model = value_or_throw(cost::fit(samples, false)),
                  three = value_or_throw(cost::fit(samples));
  if (reports) fmt::print("{}", text_of(file, model, three));
}

}  // namespace hips::perf
