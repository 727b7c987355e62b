#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <ostream>
#include <streambuf>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <hips/plan.hpp>
#include <hips/topology.hpp>
#include <hips/types.hpp>

#include "lib/base/config/config.hpp"
#include "lib/base/result.hpp"
#include "lib/cost/estimate.hpp"
#include "lib/plan/builder.hpp"
#include "lib/plan/formats/goal/write_goal.hpp"
#include "lib/plan/formats/msccl/write_msccl.hpp"
#include "lib/plan/formats/plan_json.hpp"
#include "lib/plan/formats/plan_text.hpp"
#include "tools/hips/command.hpp"
#include "tools/hips/common/job_option.hpp"
#include "tools/hips/common/output.hpp"
#include "tools/hips/common/place_names.hpp"
#include "tools/hips/common/plan_choice.hpp"
#include "tools/hips/common/reading_options.hpp"
#include "tools/hips/common/servers_memory.hpp"
#include "tools/hips/common/topology_option.hpp"
#include "tools/hips/picture/drawable.hpp"
#include "tools/hips/picture/page.hpp"

namespace hips::cli {
namespace {

struct PlanArguments {
  std::string topology;
  NamedPlan named;
  std::string bytes = "64M", type = "f32";
  std::optional<Rank> rank;
  std::string format = "text";
  bool all = false, json = false, list = false;
  JobArguments job;
};

constexpr const char* kPlanFooter =
    R"(--bytes takes K, M and G as powers of 1024, as nccl-tests does; sizes are printed so, too.
-t, --algorithm, --pattern, --leaders and --rings default to HIPS_TOPO (HIPS_TOPO_FILE), HIPS_ALGORITHM, HIPS_PATTERN,
HIPS_LEADERS and HIPS_RINGS. Without a named plan this shows the one that a call of this size between nodes gets: that of
HIPS_PLAN_FILE or HIPS_REPRODUCIBLE=any if set, else by HIPS_SELECT_TABLE or the model, as in `hips info select`. The last
line names it.

--format html writes a page for any browser: the wiring, an animation of the partial sums of each rank, and the traffic of
each NIC over time.

--all --json writes a file for HIPS_PLAN_FILE, which executes it, edited or not, once it is proved. docs/plan.schema.json has
its schema.

--json writes the plan in the format of `hips check --plan` with --all, otherwise the program of one rank:
  format version algorithm description num_ranks num_steps neighbours_only blocks{} lanes[]
  notes{}: topology bytes type nic_out_bytes nic_in_bytes (least and most of a NIC) bandwidth_seconds
           barrier_seconds bound_seconds bound_cut ratio barrier_ratio covers
           [selected: the plan's name, if no plan was named]
  programs[]: rank owned[] steps[]: op phase lane stage level round [peer rail] dst srcs[] after[]
)";

/// With more steps than this in all, the traffic is counted for one server only.
constexpr std::int64_t kMostCountedSteps = 4'000'000;

[[noreturn]] void refuse(std::string message) {
  throw Error(Status::error(Code::kInvalidArgument, std::move(message)));
}

DataType type_of(const std::string& name) {
  // By DataType.
  constexpr std::array<const char*, kNumDataTypes> kShort = {"i32", "i64", "f32", "f64", "i8",  "i16",
                                                             "u8",  "u16", "u32", "u64", "f16", "bf16"};
  for (int value = 0; value < kNumDataTypes; ++value) {
    const auto type = static_cast<DataType>(value);
    if (name == kShort[static_cast<std::size_t>(value)] || name == to_string(type)) return type;
  }
  refuse(fmt::format("--type: unknown type \"{}\"; expected one of {}", name, fmt::join(kShort, ", ")));
}

cost::Volume volume_of(const PlanArguments& arguments) {
  const auto element_bytes = static_cast<std::int64_t>(size_of(type_of(arguments.type)));
  const std::optional<std::uint64_t> bytes = parse_bytes(arguments.bytes);
  if (!bytes) refuse(fmt::format("--bytes: invalid size \"{}\"; write 4096, 64K, 4M or 1G", arguments.bytes));
  if (*bytes > cost::kMostVectorBytes)
    refuse(fmt::format("--bytes: {} is above the maximum of 1024G", arguments.bytes));
  const auto size = static_cast<std::int64_t>(*bytes);
  if (size % element_bytes != 0) {
    refuse(fmt::format("--bytes: {} is not a multiple of {}, the size of {}", size, element_bytes,
                       arguments.type));
  }
  return {size / element_bytes, element_bytes};
}

void print_algorithms() {
  for (const plan::Algorithm& algorithm : plan::algorithms()) {
    fmt::print("{:<23}{}\n{:<23}{}\n", algorithm.name, algorithm.description, "", algorithm.cost);
  }
}

/// Least and most bytes that any NIC of the counted servers moves in one direction.
struct TrafficRange {
  std::int64_t least = INT64_MAX, most = 0;
  void add(std::int64_t bytes) {
    least = std::min(least, bytes);
    most = std::max(most, bytes);
  }
  [[nodiscard]] std::string text() const {
    const std::string high = plan::bytes_text(most);
    const std::string low = plan::bytes_text(least);
    return low == high ? high : fmt::format("{} to {}", low, high);
  }
};

struct CostSummary {
  cost::Cost cost;
  bool all_servers = true;
  TrafficRange out, in;
};

CostSummary estimate(const Topology& topology, const PlanBuilder& builder, Rank rank, cost::Volume volume) {
  CostSummary summary;
  const auto steps_of_one = static_cast<std::int64_t>(builder.program(rank).steps.size());
  summary.all_servers = steps_of_one * topology.num_ranks() <= kMostCountedSteps;
  summary.cost = summary.all_servers ? cost::estimate_all(topology, builder, volume)
                                     : cost::estimate_server_of(topology, builder, rank, volume);
  for (const cost::Traffic& nic : summary.cost.loads.total.nics) {
    summary.out.add(nic.out_bytes);
    summary.in.add(nic.in_bytes);
  }
  return summary;
}

std::string duration(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

void print_cost(const Topology& topology, const PlaceNames& names, const PlanShape& shape,
                const CostSummary& summary, Rank rank) {
  const cost::Cost& cost = summary.cost;
  const std::string whose = summary.all_servers
                                ? "all servers"
                                : fmt::format("the server of {} only", names(topology.address(rank)));
  fmt::print("steps       {} in sequence, {} of latency\n", shape.num_steps, duration(cost.latency_seconds));
  if (cost.loads.total.nics.empty()) {
    fmt::print("NICs        none used\n");
    return;
  }
  fmt::print("NIC out     {} each ({}{})\n", summary.out.text(), whose,
             cost.loads.complete ? "" : "; without the messages that it relays");
  fmt::print("NIC in      {} each\n", summary.in.text());
  fmt::print("bandwidth   {}; {} with a barrier after each stage\n", duration(cost.bandwidth_seconds),
             duration(cost.barrier_seconds));
  if (cost.bound.cuts.empty()) {
    fmt::print("bound       0 s: nothing has to be sent\n");
  } else {
    fmt::print("bound       {}: the least that {} need to send and receive\n", duration(cost.bound_seconds),
               names(cost.bound.cut().name));
  }
  fmt::print("ratio       {:.3f} times the bound; {:.3f} with barriers\n", cost.ratio, cost.barrier_ratio);
}

nlohmann::ordered_json notes_of(const Topology& topology, const PlanArguments& arguments,
                                const CostSummary& summary, cost::Volume volume, const PlanChoice& choice) {
  const cost::Cost& cost = summary.cost;
  nlohmann::ordered_json notes{
      {"topology", topology.spec}, {"bytes", volume.bytes()}, {"type", arguments.type}};
  if (!cost.loads.total.nics.empty()) {
    notes["nic_out_bytes"] = {summary.out.least, summary.out.most};
    notes["nic_in_bytes"] = {summary.in.least, summary.in.most};
  }
  notes["bandwidth_seconds"] = cost.bandwidth_seconds;
  notes["barrier_seconds"] = cost.barrier_seconds;
  notes["bound_seconds"] = cost.bound_seconds;
  if (!cost.bound.cuts.empty()) notes["bound_cut"] = cost.bound.cut().name;
  notes["ratio"] = cost.ratio;
  notes["barrier_ratio"] = cost.barrier_ratio;
  notes["covers"] = summary.all_servers ? "all servers" : "one server";
  if (!choice.selected.empty()) notes["selected"] = choice.selected;
  return notes;
}

/// An ostream onto stdout through stdio, so that text and JSON share one buffer.
class StdoutBuffer final : public std::streambuf {
 protected:
  int_type overflow(int_type character) override {
    return character == traits_type::eof() ? 0 : std::putchar(character);
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    return static_cast<std::streamsize>(std::fwrite(text, 1, static_cast<std::size_t>(size), stdout));
  }
};

/// The formats of whole plans, for simulators and other libraries.
void write_exported(const std::string& format, const PlanBuilder& builder, cost::Volume volume) {
  StdoutBuffer buffer;
  std::ostream out(&buffer);
  if (format == "msccl") {
    if (Status status = plan::write_msccl(out, builder); !status.ok()) throw Error(std::move(status));
    return;
  }
  plan::GoalWriter writer(out, builder.shape(),
                          {.count = volume.count, .element_bytes = volume.element_bytes});
  for (Rank rank = 0; rank < builder.shape().num_ranks; ++rank) writer.add(builder.program(rank));
}

/// The programs that are printed.
struct RankRange {
  Rank first = 0, last = 0;
};

void write_json(const PlanBuilder& builder, RankRange ranks, nlohmann::ordered_json notes) {
  StdoutBuffer buffer;
  std::ostream out(&buffer);
  plan::PlanJsonWriter writer(out, builder.shape(), std::move(notes));
  for (Rank rank = ranks.first; rank <= ranks.last; ++rank) writer.add(builder.program(rank));
  writer.finish();
}

void print_programs(const Topology& topology, const PlaceNames& names, const PlanBuilder& builder,
                    RankRange ranks, cost::Volume volume) {
  const plan::TextVolume text_volume{volume.count, volume.element_bytes};
  fmt::print("{}", plan::shape_text(builder.shape(), topology, text_volume));
  for (Rank rank = ranks.first; rank <= ranks.last; ++rank) {
    fmt::print("\n{}",
               names(plan::program_text(builder.shape(), builder.program(rank), topology, text_volume)));
  }
  fmt::print("\n");
}

void print_choice(const Topology& topology, const PlanChoice& choice, cost::Volume volume) {
  if (choice.selected.empty()) return;
  const std::string size = plan::bytes_text(volume.bytes());
  if (choice.for_all_sizes) {
    fmt::print("selected    {}, for all sizes by {}\n", choice.selected, choice.setting);
    return;
  }
  std::string why = choice.setting.empty() ? " between nodes" : " by " + choice.setting;
  if (!choice.selected_on_node.empty() && choice.selected_on_node != choice.selected)
    why += fmt::format(" ({} within a node)", choice.selected_on_node);
  fmt::print("selected    {}, for {}{}; `hips info select` lists all sizes\n", choice.selected, size, why);
  write_stdout(servers_memory_text(topology));
}

void check_format(const PlanArguments& arguments, const Topology& topology) {
  const std::string& format = arguments.format;
  if (arguments.rank && (format == "html" || format == "goal" || format == "msccl"))
    refuse(fmt::format("--rank: --format {} writes all ranks; remove one of the two options", format));
  if (format != "html") return;
  if (Status status = picture::drawable(topology); !status.ok()) throw Error(std::move(status));
}

void run_plan(PlanArguments arguments) {
  if (arguments.list) {
    print_algorithms();
    return;
  }
  arguments.topology = topology_or_environment(arguments.topology);
  if (arguments.topology.empty()) arguments.topology = topology_of_plan_file(arguments.named);
  arguments.topology = required_topology("plan", arguments.topology);
  const topology::TopologyFile file = load_for_plan(arguments.topology, arguments.job);
  const Topology& topology = file.topology;
  check_format(arguments, topology);
  const cost::Volume volume = volume_of(arguments);
  const PlaceNames names(file);
  const PlanChoice choice = names.in_errors_of(
      [&] { return choose_plan(topology, arguments.named, static_cast<std::uint64_t>(volume.bytes())); });
  const PlanBuilder& builder = *choice.builder;
  const PlanShape& shape = builder.shape();
  const Rank rank = arguments.rank.value_or(0);
  if (rank < 0 || rank >= shape.num_ranks)
    refuse(fmt::format("--rank: {} is out of range [0, {}]", rank, shape.num_ranks - 1));
  if (arguments.format == "goal" || arguments.format == "msccl")
    return write_exported(arguments.format, builder, volume);

  const RankRange shown = arguments.all ? RankRange{0, shape.num_ranks - 1} : RankRange{rank, rank};
  const CostSummary summary = estimate(topology, builder, rank, volume);
  nlohmann::ordered_json notes = notes_of(topology, arguments, summary, volume, choice);
  if (arguments.format == "html") {
    write_stdout(value_or_throw(picture::plan_page(file, builder, notes, summary.cost)));
  } else if (arguments.json || arguments.format == "json") {
    write_json(builder, shown, std::move(notes));
  } else {
    print_programs(topology, names, builder, shown, volume);
    print_cost(topology, names, shape, summary, rank);
    print_choice(topology, choice, volume);
  }
}

}  // namespace

void add_plan(CLI::App& app) {
  auto arguments = std::make_shared<PlanArguments>();
  CLI::App* command =
      app.add_subcommand("plan", "Show a plan: the messages of each rank, and what they cost");
  command->footer(kPlanFooter);
  add_topology_option(*command, arguments->topology, "Topology, such as bcube:3,1");
  add_job_options(*command, arguments->job);
  command->add_option("-b,--bytes", arguments->bytes, "Size of the vector")
      ->type_name("SIZE")
      ->capture_default_str();
  command->add_option("--type", arguments->type, "Element type: f32, bf16, i64, u8, ..., or float32, ...")
      ->type_name("TYPE")
      ->capture_default_str();
  CLI::Option* const algorithm = command
                                     ->add_option("-a,--algorithm", arguments->named.algorithm,
                                                  "Algorithm (see --list); default: by size")
                                     ->type_name("NAME");
  CLI::Option* const pattern = command
                                   ->add_option("--pattern", arguments->named.patterns,
                                                "mesh, ring or ps:P, one for all levels or one per level "
                                                "(mesh,ring); scatter/gather: mesh/ring")
                                   ->type_name("PATTERN");
  command
      ->add_option("--leaders", arguments->named.num_leaders, "flat-ps: number of leader servers; default 1")
      ->check(CLI::Range(std::numeric_limits<std::int32_t>::max()));
  command
      ->add_option("--rings", arguments->named.num_rings,
                   "flat-ring: number of rings over different NICs; default: all that exist")
      ->check(CLI::Range(std::numeric_limits<std::int32_t>::max()));
  CLI::Option* rank =
      command->add_option("--rank", arguments->rank, "Show the program of this rank; default 0");
  command->add_flag("--all", arguments->all, "Show the programs of all ranks")->excludes(rank);
  CLI::Option* const json = command->add_flag("--json", arguments->json, "--format json");
  command
      ->add_option(
          "--format", arguments->format,
          "text or json; for all ranks: html (page for browsers), goal (LogGOPSim, ATLAHS), msccl (XML)")
      ->check(CLI::IsMember({"text", "json", "html", "goal", "msccl"}))
      ->capture_default_str()
      ->excludes(json);
  command->add_flag("--list,--algorithms", arguments->list, "List the algorithms and what they cost");
  command->callback([arguments, algorithm, pattern] {
    // An empty value comes from an unset variable of a script; it must not silently mean the default.
    if (algorithm->count() > 0 && arguments->named.algorithm.empty())
      refuse("--algorithm: empty name; give one of hips plan --list, or remove the option");
    if (pattern->count() > 0 && arguments->named.patterns.empty())
      refuse("--pattern: empty pattern; give mesh, ring or ps:1, or remove the option");
    run_plan(*arguments);
  });
}

}  // namespace hips::cli
