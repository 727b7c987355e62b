#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include <hips/topology.hpp>

#include "lib/base/result.hpp"
#include "tools/hips/command.hpp"
#include "tools/hips/common/job_option.hpp"
#include "tools/hips/common/output.hpp"
#include "tools/hips/common/place_names.hpp"
#include "tools/hips/common/reading_options.hpp"
#include "tools/hips/common/topology_option.hpp"
#include "tools/hips/compare/entry.hpp"
#include "tools/hips/compare/plan_cost.hpp"
#include "tools/hips/compare/report.hpp"
#include "tools/hips/compare/size_range.hpp"
#include "tools/hips/compare/theory.hpp"
#include "topology/formats/parse.hpp"
#include "topology/formats/topology_file.hpp"
#include "topology/parts/restrict.hpp"
#include "topology/spec.hpp"

namespace hips::cli {
namespace {

struct CompareArguments {
  JobArguments job;
  std::vector<std::string> topologies;
  std::string bytes, factor = "4", algorithms = "all", format = "text";
  bool baseline = false, theory = false;
  std::vector<std::string> rates;  ///< of --rate: with --theory one of a NIC, otherwise of tiers of cables
  double latency_us = 1;
  compare::TheoryInput given{};

  [[nodiscard]] std::vector<std::string> tier_rates() const {
    return theory ? std::vector<std::string>() : rates;
  }
};

constexpr const char* kDefaultBytes = "1K:1G";
constexpr const char* kDefaultRate = "100Gb";
constexpr const char* kCompareFooter =
    R"(--bytes takes 64M, a range such as 1K:1G, or a list with commas; K, M and G are powers of 1024.
--algorithms takes all, or names with commas. Parameters of an algorithm follow a colon: hips:ring, hips:mesh/ring,
hips:ps:1 (for all levels), flat-ps:LEADERS, flat-ring:RINGS.
--baseline adds flat ring, mesh and PS on a network where all servers are one hop apart, with one NIC per server and with
as many as the topology has. The network is printed beside the name; "of bound" refers to the bound of that network.

--format json writes one object: format version topologies[]:
  topology name num_ranks num_servers nics_per_server bound{cut seconds_per_byte}
  plans[]: plan algorithm baseline topology priced_by (all servers, some servers, closed form; null: see reason)
           scaled (counted at the largest size only, proportional at others) description relays
           num_steps num_hops num_messages fan_in busiest_link bandwidth_of_bound
           sizes[]: bytes seconds latency_seconds bandwidth_seconds busiest_bytes of_bound
                   (for a baseline of_bound and bandwidth_of_bound refer to the bound of its own topology)
  best[]: bytes plan           among the plans that need no relays and are no baselines
  default[]: plan up_to_bytes  the plans of calls between nodes; empty if the topology is too large to tell

--theory prints the closed forms for n^K servers, of flat schemes and of HiPS on a BCube and on a torus of K
dimensions, with the figures of the papers. Without --bytes they are for VGG-19, 574.7 MB. As JSON:
  format version servers radix nics leaders bytes bytes_per_s hop_seconds
  schemes[]: scheme num_steps formula barrier_seconds bandwidth_seconds bandwidth_is_at_most gst_seconds
  published[]: where what
)";

/// Parses a rate in the syntax of specs: "25Gb".
double rate_of(const std::string& text) {
  const auto topology = topology::parse("switch:2@" + text);
  if (topology && text.find('/') == std::string::npos) return topology->levels.front().bandwidth_bytes_per_s;
  throw Error(Status::error(
      Code::kInvalidArgument,
      fmt::format("--rate: invalid rate {}; write 25Gb, 2.5Gb or 100Mb", topology::in_quotes(text))));
}

std::int64_t factor_of(const std::string& text) {
  std::int64_t factor = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), factor);
  if (error == std::errc() && end == text.data() + text.size()) return factor;
  throw Error(Status::error(
      Code::kInvalidArgument,
      fmt::format("--factor: invalid number {}; give 2 to 1024, usually 2 or 4", topology::in_quotes(text))));
}

/// Fails if none of the named plans has an estimate.
void check_any_estimate(const compare::Comparison& comparison) {
  const auto& plans = comparison.plans;
  const auto asked = [](const compare::PlanCost& plan) { return !plan.entry.baseline; };
  if (std::ranges::any_of(
          plans, [&](const auto& plan) { return asked(plan) && plan.basis != compare::Basis::kNone; }))
    return;
  const auto first = std::ranges::find_if(plans, asked);
  if (first == plans.end()) return;
  throw Error(Status::error(Code::kUnsupported,
                            fmt::format("compare: no plan for {} has an estimate; {}: {}",
                                        comparison.topology.spec, first->entry.name, first->reason)));
}

/// By the names of the file. Baselines have networks of their own.
void name_links(const topology::TopologyFile& file, compare::Comparison& comparison) {
  const PlaceNames names(file);
  if (!comparison.bound.cuts.empty()) {
    std::string& cut = comparison.bound.cuts[comparison.bound.largest].name;
    cut = names(cut);
  }
  for (compare::PlanCost& plan : comparison.plans)
    if (!plan.entry.baseline) plan.busiest = names(plan.busiest);
}

void run_theory(const CompareArguments& arguments) {
  compare::TheoryInput input = arguments.given;
  // One size, not the default range of the other table: VGG-19, as in the papers.
  if (!arguments.bytes.empty()) {
    const auto sizes =
        value_or_throw(compare::parse_size_range(arguments.bytes, factor_of(arguments.factor)));
    if (sizes.size() > 1) {
      throw Error(Status::error(Code::kInvalidArgument,
                                fmt::format("--bytes: {} means {} sizes; --theory takes one, such as 64M",
                                            topology::in_quotes(arguments.bytes), sizes.size())));
    }
    input.bytes = static_cast<double>(sizes.front());
  }
  if (arguments.rates.size() > 1) {
    throw Error(Status::error(
        Code::kInvalidArgument,
        fmt::format("--rate: {} rates are given; --theory takes one, such as 25Gb", arguments.rates.size())));
  }
  input.bytes_per_s = rate_of(arguments.rates.empty() ? kDefaultRate : arguments.rates.front());
  input.hop_seconds = arguments.latency_us * 1e-6;
  const compare::Theory theory = value_or_throw(compare::make_theory(input));
  write_stdout(arguments.format == "text" ? compare::theory_text(theory) : compare::theory_json(theory));
}

/// The part of a topology that a job uses. One that no spec describes is read by a name of its own.
topology::TopologyFile topology_for_job(const std::string& spec, const JobArguments& job) {
  topology::TopologyFile part = load_for_plan(spec, job);
  if (!part.topology.spec.starts_with(topology::kPartOf)) return part;
  const std::string name = spec + ", hosts of the job";
  part.topology.spec = "file:" + name;
  topology::read_path_by(name, [part] { return Result<topology::TopologyFile>(part); });
  return part;
}

void run_compare(CompareArguments arguments) {
  if (arguments.theory) {
    run_theory(arguments);
    return;
  }
  if (arguments.bytes.empty()) arguments.bytes = kDefaultBytes;
  if (arguments.topologies.empty()) arguments.topologies.push_back(required_topology("compare", ""));
  const auto sizes = value_or_throw(compare::parse_size_range(arguments.bytes, factor_of(arguments.factor)));
  // All arguments are checked before the first table is printed.
  std::vector<topology::TopologyFile> files;
  std::vector<std::vector<compare::Entry>> entries;
  for (const std::string& spec : arguments.topologies) {
    const Topology& topology = files.emplace_back(topology_for_job(spec, arguments.job)).topology;
    auto& rows = entries.emplace_back(value_or_throw(compare::parse_entries(arguments.algorithms, topology)));
    if (!arguments.baseline) continue;
    for (compare::Entry& row : compare::baseline_entries(topology)) rows.push_back(std::move(row));
  }
  std::vector<compare::Comparison> comparisons;
  for (std::size_t i = 0; i < files.size(); ++i) {
    comparisons.push_back(compare::compare(files[i].topology, entries[i], sizes));
    check_any_estimate(comparisons.back());
    if (arguments.format == "text") name_links(files[i], comparisons.back());
  }
  if (arguments.format == "text") {
    for (const compare::Comparison& comparison : comparisons)
      write_stdout(compare::report_text(comparison) + "\n");
  }
  write_stdout(arguments.format == "text" ? compare::legend_text(comparisons)
                                          : compare::report_json(comparisons));
}

}  // namespace

void add_compare(CLI::App& app) {
  auto arguments = std::make_shared<CompareArguments>();
  CLI::App* command =
      app.add_subcommand("compare", "Predict the time of every algorithm for each size, and show the best");
  command->footer(kCompareFooter);
  CLI::Option* const topology =
      command->add_option("-t,--topology", arguments->topologies, "Topology, such as bcube:3,1; repeatable")
          ->type_name("SPEC")
          ->expected(1)
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_reading_options(*command,
                      {.topologies = [arguments](const ReadingArguments&) { return arguments->topologies; },
                       .are_one = false,
                       .rates = [arguments] { return arguments->tier_rates(); }});
  add_job_options(*command, arguments->job);
  command->add_option("-b,--bytes", arguments->bytes, "Sizes of the float32 vector")
      ->type_name("SIZE[:SIZE],...")
      ->default_str(kDefaultBytes);
  command->add_option("-f,--factor", arguments->factor, "Ratio of consecutive sizes of a range")
      ->type_name("NUMBER")
      ->capture_default_str();
  command->add_option("-a,--algorithms", arguments->algorithms, "all, or names from hips plan --list")
      ->type_name("NAME,...")
      ->capture_default_str();
  command->add_flag("--baseline", arguments->baseline, "Add flat algorithms with one NIC and with all NICs");
  CLI::Option* const theory =
      command->add_flag("--theory", arguments->theory, "Print the closed forms for N, n, K, W and B instead")
          ->excludes(topology);
  compare::TheoryInput& given = arguments->given;
  command->add_option("-N,--servers", given.servers, "--theory: number of servers, N = n^K")->needs(theory);
  command->add_option("-n,--radix", given.radix, "--theory: radix or side, n")
      ->needs(theory)
      ->capture_default_str();
  command->add_option("-K,--nics", given.nics, "--theory: levels (NICs per server) or dimensions, K")
      ->needs(theory)
      ->capture_default_str();
  command->add_option("-P,--leaders", given.leaders, "--theory: dedicated servers of the flat PS, P")
      ->needs(theory)
      ->capture_default_str();
  command
      ->add_option(
          "-B,--rate", arguments->rates,
          "--theory: rate of a NIC, B; otherwise TIER=RATE of cables whose rate a file does not tell: leaf, spine "
          "or core; may be given for each")
      ->type_name("RATE")
      ->allow_extra_args(false)
      ->default_str(kDefaultRate);
  command->add_option("--latency", arguments->latency_us, "--theory: latency of a step, in us")
      ->needs(theory)
      ->capture_default_str();
  command->add_option("--format", arguments->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->callback([arguments] { run_compare(*arguments); });
}

}  // namespace hips::cli
