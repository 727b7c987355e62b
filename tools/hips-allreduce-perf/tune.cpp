#include "tools/hips-allreduce-perf/tune.hpp"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "lib/cost/select_table.hpp"
#include "tools/hips-allreduce-perf/entrants.hpp"
#include "tools/hips-allreduce-perf/group.hpp"
#include "tools/hips-allreduce-perf/measure.hpp"
#include "tools/hips-allreduce-perf/output_file.hpp"
#include "tools/hips-allreduce-perf/report.hpp"
#include "tools/hips-allreduce-perf/values.hpp"

namespace hips::perf {
namespace {

/// What a plan has to be faster by to take over.
constexpr double kWorthAChange = 0.97;

std::string title(const std::vector<Entrant>& entrants) {
  std::string text = fmt::format("# {:>10}", "size (B)");
  for (const Entrant& entrant : entrants) text += fmt::format("  {:>18}", entrant.name());
  return text;
}

/// The table with the lines of this topology anew.
void write(const Options& options, const std::string& spec, std::vector<cost::ChosenPlan> plans) {
  cost::SelectTable table;
  if (access(options.tune_file.c_str(), F_OK) == 0)
    table = value_or_throw(cost::SelectTable::read(options.tune_file));
  table.set(spec, std::move(plans));
  if (Status status = table.write(options.tune_file); !status.ok()) throw Error(std::move(status));
}

}  // namespace

void tune(Launch& launch, const Options& options) {
  std::vector<Entrant> entrants = entrants_of(launch, options);
  entrants.insert(entrants.begin(), automatic_entrant(launch, options));
  Group& first = *entrants.front().group;
  expect_writable(first, options.tune_file);
  const DataType type = options.types.front();
  const bool speaker = first.rank() == 0;
  const std::string spec = spec_of(options, first.size());
  if (speaker) {
    fmt::print("# hips-allreduce-perf --tune: us for a call of {} {} on {}, median of {} turns of {} calls\n",
               to_string(options.ops.front()), type_name(type), spec, options.rounds, options.iters);
    fmt::print("{}  best\n", title(entrants));
  }
  const std::vector<std::uint64_t> sizes = options.distinct_sizes(type);
  std::vector<std::byte> in(sizes.back()), out(sizes.back());
  fill(in, type, options.ops.front(), first.rank(), first.size());
  std::vector<cost::ChosenPlan> plans;
  std::optional<std::size_t> best;
  for (const std::uint64_t bytes : sizes) {
    const std::uint64_t count = bytes / size_of(type);
    const std::vector<double> medians = times_in_turns(entrants, options, count, in, out);
    std::string row = fmt::format("{:>12}", bytes);
    for (const double us : medians) row += fmt::format("  {:>18.2f}", us);
    const auto fastest = static_cast<std::size_t>(std::ranges::min_element(medians) - medians.begin());
    if (!best || medians[fastest] < kWorthAChange * medians[*best]) best = fastest;
    const Entrant& winner = entrants[*best];
    if (!plans.empty() && plans.back().algorithm == winner.algorithm &&
        plans.back().pattern == winner.pattern)
      plans.back().up_to_bytes = bytes;
    else
      plans.push_back({bytes, winner.algorithm, winner.pattern});
    if (speaker) {
      fmt::print("{}  {}\n", row, winner.name());
      std::fflush(stdout);
    }
  }
  plans.back().up_to_bytes = UINT64_MAX;
  if (!speaker) return;
  const std::string summary = to_string(plans);
  write(options, spec, std::move(plans));
  fmt::print("# {}: {}\n# Written to {}; HIPS_SELECT_TABLE={} uses it\n", spec, summary, options.tune_file,
             options.tune_file);
}

}  // namespace hips::perf
