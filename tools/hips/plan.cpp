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

#include "lib/base/config.hpp"
#include "lib/base/result.hpp"
#include "lib/cost/estimate.hpp"
#include "lib/plan/builder.hpp"
#include "lib/plan/formats/goal/write_goal.hpp"
#include "lib/plan/formats/msccl/write_msccl.hpp"
#include "lib/plan/formats/plan_json.hpp"
#include "lib/plan/formats/plan_text.hpp"
#include "tools/hips/command.hpp"
#include "tools/hips/job_option.hpp"
#include "tools/hips/picture/drawable.hpp"
#include "tools/hips/picture/page.hpp"
#include "tools/hips/plan_choice.hpp"
#include "tools/hips/servers_memory.hpp"
#include "tools/hips/topology_option.hpp"

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
    R"(--bytes takes K, M and G, powers of 1024, as nccl-tests does; sizes are printed in powers of 1000.
-t, --algorithm, --pattern, --leaders and --rings may come from HIPS_TOPO (HIPS_TOPO_FILE), HIPS_ALGORITHM, HIPS_PATTERN,
HIPS_LEADERS and HIPS_RINGS. Where none but -t is named, it is the plan that a call of so many bytes between hosts gets,
by HIPS_SELECT_TABLE or the model, as `hips info select` has it; its name is in the last line.

--format html writes a page that needs nothing but a browser: the wiring, an animation of who holds which sums,
and what passes each NIC when.

--all --json writes a file that HIPS_PLAN_FILE runs, edited or not, once it is proved. docs/plan.schema.json has its
schema.

--json writes the plan as `hips check --plan` reads it when --all is given, otherwise of one rank:
  format version algorithm description num_ranks num_steps neighbours_only blocks{} lanes[]
  notes{}: topology bytes type nic_out_bytes nic_in_bytes (least and most of a NIC) bandwidth_seconds
           barrier_seconds bound_seconds bound_cut ratio barrier_ratio covers
           [selected: the plan's name where nobody named one]
  programs[]: rank owned[] steps[]: op phase lane stage level round [peer rail] dst srcs[] after[]
)";

/// Beyond this many steps in all, one server's own program stands for all.
constexpr std::int64_t kMostPricedSteps = 4'000'000;

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
  refuse(fmt::format("--type: \"{}\" is no type; write one of {}", name, fmt::join(kShort, ", ")));
}

cost::Volume volume_of(const PlanArguments& arguments) {
  const auto element_bytes = static_cast<std::int64_t>(size_of(type_of(arguments.type)));
  const std::optional<std::uint64_t> bytes = parse_bytes(arguments.bytes);
  if (!bytes) refuse(fmt::format("--bytes: \"{}\" is no size; write 4096, 64K, 4M or 1G", arguments.bytes));
  if (*bytes > cost::kMostVectorBytes)
    refuse(fmt::format("--bytes: {} is above 1024G, the largest vector that is priced", arguments.bytes));
  const auto size = static_cast<std::int64_t>(*bytes);
  if (size % element_bytes != 0) {
    refuse(
        fmt::format("--bytes: {} is no multiple of {}, the size of {}", size, element_bytes, arguments.type));
  }
  return {size / element_bytes, element_bytes};
}

void print_algorithms() {
  for (const plan::Algorithm& algorithm : plan::algorithms()) {
    fmt::print("{:<20}{}\n{:<20}{}\n", algorithm.name, algorithm.description, "", algorithm.cost);
  }
}

/// Least and most that any NIC of the priced servers carries in one direction.
struct Range {
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

struct Priced {
  cost::Cost cost;
  bool all_servers = true;
  Range out, in;
};

Priced price(const Topology& topology, const PlanBuilder& builder, Rank rank, cost::Volume volume) {
  Priced priced;
  const auto steps_of_one = static_cast<std::int64_t>(builder.program(rank).steps.size());
  priced.all_servers = steps_of_one * topology.num_ranks() <= kMostPricedSteps;
  priced.cost = priced.all_servers ? cost::estimate_all(topology, builder, volume)
                                   : cost::estimate_server_of(topology, builder, rank, volume);
  for (const cost::Traffic& nic : priced.cost.loads.total.nics) {
    priced.out.add(nic.out_bytes);
    priced.in.add(nic.in_bytes);
  }
  return priced;
}

std::string duration(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

void print_cost(const Topology& topology, const PlanShape& shape, const Priced& priced, Rank rank) {
  const cost::Cost& cost = priced.cost;
  const std::string whose =
      priced.all_servers ? "all servers" : fmt::format("the server of {} alone", topology.address(rank));
  fmt::print("steps       {} one after the other, {} of latency\n", shape.num_steps,
             duration(cost.latency_seconds));
  if (priced.cost.loads.total.nics.empty()) {
    fmt::print("NICs        none used\n");
    return;
  }
  fmt::print("NIC out     {} each ({}{})\n", priced.out.text(), whose,
             cost.loads.complete ? "" : "; what it relays for others is not in it");
  fmt::print("NIC in      {} each\n", priced.in.text());
  fmt::print("bandwidth   {}; {} with a barrier after each stage\n", duration(cost.bandwidth_seconds),
             duration(cost.barrier_seconds));
  fmt::print("bound       {} by {}\n", duration(cost.bound_seconds),
             cost.bound.cuts.empty() ? "nothing" : cost.bound.cut().name);
  fmt::print("ratio       {:.3f} times the bound; {:.3f} with barriers\n", cost.ratio, cost.barrier_ratio);
}

nlohmann::ordered_json notes_of(const Topology& topology, const PlanArguments& arguments,
                                const Priced& priced, cost::Volume volume) {
  const cost::Cost& cost = priced.cost;
  nlohmann::ordered_json notes{
      {"topology", topology.spec}, {"bytes", volume.bytes()}, {"type", arguments.type}};
  if (!cost.loads.total.nics.empty()) {
    notes["nic_out_bytes"] = {priced.out.least, priced.out.most};
    notes["nic_in_bytes"] = {priced.in.least, priced.in.most};
  }
  notes["bandwidth_seconds"] = cost.bandwidth_seconds;
  notes["barrier_seconds"] = cost.barrier_seconds;
  notes["bound_seconds"] = cost.bound_seconds;
  if (!cost.bound.cuts.empty()) notes["bound_cut"] = cost.bound.cut().name;
  notes["ratio"] = cost.ratio;
  notes["barrier_ratio"] = cost.barrier_ratio;
  notes["covers"] = priced.all_servers ? "all servers" : "one server";
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

void print_selected(const ChosenPlan& chosen, cost::Volume volume) {
  std::string why = " between hosts";
  if (!chosen.table.empty()) why = fmt::format(" by HIPS_SELECT_TABLE={}", chosen.table);
  if (chosen.selected_on_host != chosen.selected)
    why += fmt::format(" ({} within one)", chosen.selected_on_host);
  fmt::print("selected    {}, for {}{}; `hips info select` has all sizes\n", chosen.selected,
             plan::bytes_text(volume.bytes()), why);
}

void run_plan(PlanArguments arguments) {
  if (arguments.list) {
    print_algorithms();
    return;
  }
  arguments.topology = topology_or_environment(arguments.topology);
  if (arguments.topology.empty())
    refuse("plan: no topology; give -t SPEC (such as bcube:3,1) or set HIPS_TOPO");
  const topology::TopologyFile file = load_for_job(arguments.topology, arguments.job);
  const Topology& topology = file.topology;
  if (arguments.rank &&
      (arguments.format == "html" || arguments.format == "goal" || arguments.format == "msccl")) {
    refuse(fmt::format("--rank: --format {} is of all ranks; leave one of the two out", arguments.format));
  }
  if (arguments.format == "html") {
    if (Status status = picture::drawable(topology); !status.ok()) throw Error(std::move(status));
  }
  const cost::Volume volume = volume_of(arguments);
  const ChosenPlan chosen =
      choose_plan(topology, arguments.named, static_cast<std::uint64_t>(volume.bytes()));
  const PlanBuilder* const builder = chosen.builder.get();
  const PlanShape& shape = builder->shape();
  const Rank rank = arguments.rank.value_or(0);
  if (rank < 0 || rank >= shape.num_ranks) {
    refuse(fmt::format("--rank: {} of {} ranks; give 0 to {}", rank, shape.num_ranks, shape.num_ranks - 1));
  }
  const Rank first = arguments.all ? 0 : rank;
  const Rank last = arguments.all ? shape.num_ranks - 1 : rank;
  const Priced priced = price(topology, *builder, rank, volume);

  if (arguments.format == "goal") {
    // A simulator needs all ranks.
    StdoutBuffer buffer;
    std::ostream out(&buffer);
    plan::GoalWriter writer(out, shape, {.count = volume.count, .element_bytes = volume.element_bytes});
    for (Rank r = 0; r < shape.num_ranks; ++r) writer.add(builder->program(r));
    return;
  }
  if (arguments.format == "msccl") {
    StdoutBuffer buffer;
    std::ostream out(&buffer);
    if (Status status = plan::write_msccl(out, *builder); !status.ok()) throw Error(std::move(status));
    return;
  }
  nlohmann::ordered_json notes = notes_of(topology, arguments, priced, volume);
  if (!chosen.selected.empty()) notes["selected"] = chosen.selected;
  if (arguments.format == "html") {
    fmt::print("{}", value_or_throw(picture::plan_page(file, *builder, notes, priced.cost)));
    return;
  }
  if (arguments.json || arguments.format == "json") {
    StdoutBuffer buffer;
    std::ostream out(&buffer);
    plan::PlanJsonWriter writer(out, shape, std::move(notes));
    for (Rank r = first; r <= last; ++r) writer.add(builder->program(r));
    writer.finish();
    return;
  }
  const plan::TextVolume text_volume{volume.count, volume.element_bytes};
  fmt::print("{}", plan::shape_text(shape, topology, text_volume));
  for (Rank r = first; r <= last; ++r) {
    fmt::print("\n{}", plan::program_text(shape, builder->program(r), topology, text_volume));
  }
  fmt::print("\n");
  print_cost(topology, shape, priced, rank);
  if (chosen.selected.empty()) return;
  print_selected(chosen, volume);
  fmt::print("{}", servers_memory_text(topology));
}

}  // namespace

void add_plan(CLI::App& app) {
  auto arguments = std::make_shared<PlanArguments>();
  CLI::App* command = app.add_subcommand("plan", "Show a plan: who sends what to whom, and what it costs");
  command->footer(kPlanFooter);
  command->add_option("-t,--topology", arguments->topology, "Topology, such as bcube:3,1")->type_name("SPEC");
  add_job_options(*command, arguments->job);
  command->add_option("-b,--bytes", arguments->bytes, "Size of the vector")
      ->type_name("SIZE")
      ->capture_default_str();
  command->add_option("--type", arguments->type, "Element type: f32, bf16, i64, u8, ..., or float32, ...")
      ->type_name("TYPE")
      ->capture_default_str();
  CLI::Option* const algorithm = command
                                     ->add_option("-a,--algorithm", arguments->named.algorithm,
                                                  "Algorithm (see --list); default by size")
                                     ->type_name("NAME");
  CLI::Option* const pattern =
      command
          ->add_option(
              "--pattern", arguments->named.patterns,
              "mesh, ring or ps:P, one for all levels or one per level: mesh,ring; scatter/gather: mesh/ring")
          ->type_name("PATTERN");
  command
      ->add_option("--leaders", arguments->named.num_leaders,
                   "flat-ps: number of servers that lead; default 1")
      ->check(CLI::Range(std::numeric_limits<std::int32_t>::max()));
  command
      ->add_option("--rings", arguments->named.num_rings,
                   "flat-ring: rings over different NICs; default as many as exist")
      ->check(CLI::Range(std::numeric_limits<std::int32_t>::max()));
  CLI::Option* rank =
      command->add_option("--rank", arguments->rank, "Show the program of this rank; default 0");
  command->add_flag("--all", arguments->all, "Show the programs of all ranks")->excludes(rank);
  CLI::Option* const json = command->add_flag("--json", arguments->json, "--format json");
  command
      ->add_option(
          "--format", arguments->format,
          "text, json, or all ranks: html (a page for browsers), goal (LogGOPSim, ATLAHS), msccl (XML)")
      ->check(CLI::IsMember({"text", "json", "html", "goal", "msccl"}))
      ->capture_default_str()
      ->excludes(json);
  command->add_flag("--list,--algorithms", arguments->list, "List the algorithms and what they cost");
  command->callback([arguments, algorithm, pattern] {
    // An empty variable of the caller's script, which would silently mean the default.
    if (algorithm->count() > 0 && arguments->named.algorithm.empty())
      refuse("--algorithm: is empty; give a name of hips plan --list, or leave it out");
    if (pattern->count() > 0 && arguments->named.patterns.empty())
      refuse("--pattern: is empty; give one such as mesh, ring or ps:1, or leave it out");
    run_plan(*arguments);
  });
}

}  // namespace hips::cli
