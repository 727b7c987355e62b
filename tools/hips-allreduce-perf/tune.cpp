#include "tools/hips-allreduce-perf/tune.hpp"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <hips/topology.hpp>

#include "lib/base/clock.hpp"
#include "lib/base/config.hpp"
#include "lib/cost/select_table.hpp"
#include "lib/plan/builder.hpp"
#include "tools/hips-allreduce-perf/group.hpp"
#include "tools/hips-allreduce-perf/measure.hpp"
#include "tools/hips-allreduce-perf/report.hpp"
#include "tools/hips-allreduce-perf/values.hpp"

namespace hips::perf {
namespace {

/// What a plan has to be faster by to take over.
constexpr double kWorthAChange = 0.97;

struct Entrant {
  std::string algorithm, pattern;
  std::unique_ptr<Group> group;
  [[nodiscard]] std::string name() const { return pattern.empty() ? algorithm : algorithm + " " + pattern; }
};

/// All that run here; the same on all ranks, as every rank gets the same error.
std::vector<Entrant> entrants_of(Launch& launch, const Options& options) {
  std::vector<Entrant> entrants;
  for (const plan::Algorithm& algorithm : plan::algorithms()) {
    const bool has_patterns = algorithm.name == "hips";
    for (const char* pattern :
         has_patterns ? std::vector<const char*>{"mesh", "ring"} : std::vector<const char*>{""}) {
      Options named = options;
      named.algorithm = algorithm.name;
      named.pattern = pattern;
      try {
        entrants.push_back({named.algorithm, named.pattern, std::make_unique<Group>(launch, named)});
      } catch (const Error& error) {
        if (error.status().code != Code::kUnsupported) throw;
      }
    }
  }
  return entrants;
}

/// us for a call, of the slowest rank.
double time(Group& group, const Options& options, std::uint64_t count, std::vector<std::byte>& in,
            std::vector<std::byte>& out) {
  group.barrier();
  const SystemClock& clock = SystemClock::instance();
  const std::int64_t begin_ns = clock.now_ns();
  for (std::int32_t i = 0; i < options.iters; ++i)
    group.allreduce(in.data(), out.data(), count, options.types.front(), options.ops.front());
  const double mine_us = static_cast<double>(clock.now_ns() - begin_ns) / 1e3 / options.iters;
  return group.combine(mine_us, ReduceOp::kMax);
}

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

std::string spec_of(const Options& options, int size) {
  const std::string named =
      !options.topology.empty() ? options.topology : load_process_config().config.topology.value_or("");
  if (named.empty()) return fmt::format("switch:{}", size);
  Topology topology = parse_topology(named);
  if (topology.num_ranks() != size && topology.ranks_per_server == 1 && size % topology.num_ranks() == 0)
    topology = parse_topology(fmt::format("{}/{}", named, size / topology.num_ranks()));
  return topology.spec;
}

}  // namespace

void tune(Launch& launch, const Options& options) {
  std::vector<Entrant> entrants = entrants_of(launch, options);
  Group& first = *entrants.front().group;
  const DataType type = options.types.front();
  const bool speaker = first.rank() == 0;
  const std::string spec = spec_of(options, first.size());
  if (speaker) {
    fmt::print("# hips-allreduce-perf --tune: us for a call of {} {} on {}, median of {} turns of {} calls\n",
               to_string(options.ops.front()), type_name(type), spec, options.rounds, options.iters);
    fmt::print("{}  best\n", title(entrants));
  }
  const std::vector<std::uint64_t> sizes = options.sizes(type);
  std::vector<std::byte> in(sizes.back()), out(sizes.back());
  fill(in, type, options.ops.front(), first.rank(), first.size());
  std::vector<cost::ChosenPlan> plans;
  std::optional<std::size_t> best;
  for (const std::uint64_t bytes : sizes) {
    const std::uint64_t count = bytes / size_of(type);
    std::vector<std::vector<double>> times(entrants.size());
    for (std::int32_t round = -1; round < options.rounds; ++round) {
      for (std::size_t i = 0; i < entrants.size(); ++i) {
        const double us = time(*entrants[i].group, options, count, in, out);
        if (round >= 0) times[i].push_back(us);  // the first turn makes connections
      }
    }
    std::string row = fmt::format("{:>12}", bytes);
    std::vector<double> medians;
    for (const auto& of_one : times) {
      medians.push_back(median(of_one));
      row += fmt::format("  {:>18.2f}", medians.back());
    }
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
