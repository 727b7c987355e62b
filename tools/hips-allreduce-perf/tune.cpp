#include "tools/hips-allreduce-perf/tune.hpp"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "lib/cost/select_table.hpp"
#include "tools/hips-allreduce-perf/group.hpp"
#include "tools/hips-allreduce-perf/measure.hpp"
#include "tools/hips-allreduce-perf/output_file.hpp"
#include "tools/hips-allreduce-perf/report.hpp"
#include "tools/hips-allreduce-perf/timed_plans.hpp"
#include "tools/hips-allreduce-perf/values.hpp"

namespace hips::perf {
namespace {

/// A plan replaces the one of the previous size only if its time is below this share.
constexpr double kWorthAChange = 0.97;

std::string title(const std::vector<TimedPlan>& timed) {
  std::string text = fmt::format("# {:>10}", "size (B)");
  for (const TimedPlan& plan : timed) text += fmt::format("  {:>18}", plan.name());
  return text;
}

cost::SelectTable read_table(const PerfOptions& options) {
  if (access(options.tune_file.c_str(), F_OK) != 0) return {};
  return value_or_throw(cost::SelectTable::read(options.tune_file));
}

/// Replaces the lines of this topology in the selection table.
void write(const PerfOptions& options, const std::string& spec, std::vector<cost::ChosenPlan> chosen) {
  cost::SelectTable table = read_table(options);  // as it is now: another run may have added to it
  table.set(spec, std::move(chosen));
  if (Status status = table.write(options.tune_file); !status.ok()) throw Error(std::move(status));
}

/// Appends the best plan of a size, or extends the last one's range if it is the same.
void append(const TimedPlan& best, std::uint64_t bytes, std::vector<cost::ChosenPlan>& chosen) {
  if (!chosen.empty() && chosen.back().algorithm == best.algorithm && chosen.back().pattern == best.pattern) {
    chosen.back().up_to_bytes = bytes;
  } else {
    chosen.push_back({bytes, best.algorithm, best.pattern});
  }
}

}  // namespace

void tune(PerfLaunch& launch, const PerfOptions& options) {
  std::vector<TimedPlan> timed = timed_plans(launch, options);
  timed.insert(timed.begin(), automatic_plan(launch, options));
  PerfGroup& first = *timed.front().group;
  expect_writable(first, options.tune_file);
  (void)read_table(options);  // before minutes of timing
  const DataType type = options.types.front();
  const bool reports = first.rank() == 0;
  const std::string spec = spec_of(options, first.size());
  if (reports) {
    fmt::print("# hips-allreduce-perf --tune: us per call of {} {} on {}, median of {} rounds of {} calls\n",
               to_string(options.ops.front()), type_name(type), spec, options.rounds, options.iters);
    fmt::print("{}  best\n", title(timed));
  }
  const std::vector<std::uint64_t> sizes = options.distinct_sizes(type);
  std::vector<std::byte> in(sizes.back()), out(sizes.back());
  fill(in, type, options.ops.front(), first.rank(), first.size());
  std::vector<cost::ChosenPlan> chosen;
  std::optional<std::size_t> best;
  for (const std::uint64_t bytes : sizes) {
    const std::uint64_t count = bytes / size_of(type);
    const std::vector<double> medians = interleaved_times(timed, options, count, in, out);
    std::string row = fmt::format("{:>12}", bytes);
    for (const double us : medians) row += fmt::format("  {:>18.2f}", us);
    const auto fastest = static_cast<std::size_t>(std::ranges::min_element(medians) - medians.begin());
    if (!best || medians[fastest] < kWorthAChange * medians[*best]) best = fastest;
    append(timed[*best], bytes, chosen);
    if (reports) {
      fmt::print("{}  {}\n", row, timed[*best].name());
      std::fflush(stdout);
    }
  }
  chosen.back().up_to_bytes = UINT64_MAX;
  if (!reports) return;
  const std::string summary = to_string(chosen);
  write(options, spec, std::move(chosen));
  fmt::print("# {}: {}\n# Written to {}; HIPS_SELECT_TABLE={} uses it\n", spec, summary, options.tune_file,
             options.tune_file);
}

}  // namespace hips::perf
