#include "tools/hips-allreduce-perf/fit.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "lib/cost/fit.hpp"
#include "lib/plan/builder.hpp"
#include "tools/hips-allreduce-perf/entrants.hpp"
#include "tools/hips-allreduce-perf/values.hpp"
#include "topology/formats/topology_file.hpp"

namespace hips::perf {
namespace {

/// The plan of an entrant, as the model counts it; null where servers would relay, which the model charges to
/// the wires and an emulation to the host.
std::unique_ptr<PlanBuilder> counted(const Topology& topology, const Entrant& entrant) {
  PlanRequest request{.algorithm = entrant.algorithm};
  if (!entrant.pattern.empty()) request.patterns = value_or_throw(plan::parse_patterns(entrant.pattern));
  auto builder = plan::make_builder(topology, request);
  return builder && (*builder)->shape().neighbours_only ? std::move(*builder) : nullptr;
}

/// `model` is for the file, whose model has no term for folding; `three` has one.
std::string text_of(const topology::TopologyFile& measured, const cost::Fit& model, const cost::Fit& three) {
  topology::TopologyFile file = measured;
  file.topology = cost::fitted(file.topology, model);
  const std::string gamma = !three.has_gamma ? "not told apart: one kind of plan ran"
                            : !(three.reduce_seconds_per_byte > 0)
                                ? "hidden behind the wires"
                                : fmt::format("{:.3g} GB/s", 1e-9 / three.reduce_seconds_per_byte);
  return fmt::format(
      "# with folding apart: alpha {:.3g} us a hop, beta {:.3g} GB/s of the fastest NIC, gamma {}; within "
      "{:.0f} %\n"
      "# of half of the times. Without, as hips plan and hips compare have it, within {:.0f} %: -t "
      "THIS.yaml\n{}",
      three.hop_seconds * 1e6, 1e-9 / three.seconds_per_byte, gamma, three.median_error * 100,
      model.median_error * 100, value_or_throw(topology::topology_file_text(file, false)));
}

}  // namespace

void fit(Launch& launch, const Options& options) {
  std::vector<Entrant> entrants = entrants_of(launch, options);
  Group& first = *entrants.front().group;
  const DataType type = options.types.front();
  const bool speaker = first.rank() == 0;
  const auto file = value_or_throw(topology::load_topology(spec_of(options, first.size())));
  std::vector<std::unique_ptr<PlanBuilder>> builders;
  for (const Entrant& entrant : entrants) builders.push_back(counted(file.topology, entrant));
  const std::vector<std::uint64_t> sizes = options.distinct_sizes(type);
  std::vector<std::byte> in(sizes.back()), out(sizes.back());
  fill(in, type, options.ops.front(), first.rank(), first.size());
  if (speaker) {
    fmt::print("# hips-allreduce-perf --fit: {} {} on {}, medians of {} turns of {} calls, us\n",
               to_string(options.ops.front()), type_name(type), file.topology.spec, options.rounds,
               options.iters);
  }
  // Ranks that all run on one host meet at no NIC.
  const auto processes = first.processes();
  const bool one_host = std::ranges::all_of(
      processes, [&](const Process& process) { return process.host == processes.front().host; });
  const cost::Medium medium = one_host ? cost::Medium::kMemory : cost::Medium::kWires;
  std::vector<cost::FitSample> samples;
  for (const std::uint64_t bytes : sizes) {
    const std::uint64_t count = bytes / size_of(type);
    const std::vector<double> medians = times_in_turns(entrants, options, count, in, out);
    std::string row = fmt::format("# {:>11}", bytes);
    for (std::size_t i = 0; i < entrants.size(); ++i) {
      if (builders[i] == nullptr) continue;
      row += fmt::format("  {} {:.2f}", entrants[i].name(), medians[i]);
      const cost::Volume volume{static_cast<std::int64_t>(count), static_cast<std::int64_t>(size_of(type))};
      samples.push_back(cost::fit_sample(file.topology, medium, *builders[i], volume, medians[i] * 1e-6));
    }
    if (speaker) {
      fmt::print("{}\n", row);
      std::fflush(stdout);
    }
  }
  // Every rank has the same times, so that all say the same where they tell nothing.
  const cost::Fit model = value_or_throw(cost::fit(samples, false)),
                  three = value_or_throw(cost::fit(samples));
  if (speaker) fmt::print("{}", text_of(file, model, three));
}

}  // namespace hips::perf
