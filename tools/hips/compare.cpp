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
#include "tools/hips/compare/entry.hpp"
#include "tools/hips/compare/price.hpp"
#include "tools/hips/compare/report.hpp"
#include "tools/hips/compare/size_range.hpp"
#include "tools/hips/compare/theory.hpp"
#include "tools/hips/job_option.hpp"
#include "tools/hips/topology_option.hpp"
#include "topology/formats/parse.hpp"
#include "topology/parts/restrict.hpp"
#include "topology/spec.hpp"

namespace hips::cli {
namespace {

struct CompareArguments {
  JobArguments job;
  std::vector<std::string> topologies;
  std::string bytes, factor = "4", algorithms = "all", format = "text";
  bool baseline = false, theory = false;
  std::string rate = "100Gb";
  double latency_us = 1;
  compare::TheoryInput given{};
};

constexpr const char* kDefaultBytes = "1K:1G";
constexpr const char* kCompareFooter =
    R"(--bytes takes 64M, a range such as 1K:1G, or several with commas; K, M and G are powers of 1024.
--algorithms takes all, or names with commas; what an algorithm takes follows a colon: hips:ring, hips:mesh/ring,
hips:ps:1 (for all levels), flat-ps:LEADERS, flat-ring:RINGS.
--baseline adds flat ring, mesh and PS between servers that are all one hop apart, with one NIC each and with as
many as the topology gives them: each on the wiring beside its name, and "of bound" is of the bound of that wiring.

--format json writes one object: format version topologies[]:
  topology name num_ranks num_servers nics_per_server bound{cut seconds_per_byte}
  plans[]: plan algorithm baseline topology priced_by (all servers, some servers, closed form; null: and a reason)
           scaled (bytes in proportion to those of the largest size) description relays
           num_steps num_hops num_messages fan_in busiest_link bandwidth_of_bound
           sizes[]: bytes seconds latency_seconds bandwidth_seconds busiest_bytes of_bound
                   of_bound and bandwidth_of_bound of a baseline: of the bound of its own topology
  best[]: bytes plan           of the plans without relays that are no baselines
  default[]: plan up_to_bytes  what a call between hosts takes; empty where that is too large to say

--theory prints the closed forms for n^K servers, of flat schemes and of HiPS on a BCube and on a torus of K
dimensions, and the papers' own figures beside them; without --bytes for VGG-19, 574.7 MB. As JSON:
  format version servers radix nics leaders bytes bytes_per_s hop_seconds
  schemes[]: scheme num_steps formula barrier_seconds bandwidth_seconds bandwidth_is_at_most gst_seconds
  published[]: where what
)";

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

/// A rate as specs write it: "25Gb".
double rate_of(const std::string& text) {
  const auto topology = topology::parse("switch:2@" + text);
  if (topology && text.find('/') == std::string::npos) return topology->levels.front().bandwidth_bytes_per_s;
  throw Error(Status::error(
      Code::kInvalidArgument,
      fmt::format("--rate: {} is no rate; write 25Gb, 2.5Gb or 100Mb", topology::in_quotes(text))));
}

std::int64_t factor_of(const std::string& text) {
  std::int64_t factor = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), factor);
  if (error == std::errc() && end == text.data() + text.size()) return factor;
  throw Error(Status::error(Code::kInvalidArgument,
                            fmt::format("--factor: {} is no whole number; give 2 to 1024, usually 2 or 4",
                                        topology::in_quotes(text))));
}

/// A table of nothing but reasons is a mistake of the caller's.
void check_priced(const compare::Comparison& comparison) {
  const auto& plans = comparison.plans;
  const auto asked = [](const compare::PricedPlan& plan) { return !plan.entry.baseline; };
  if (std::ranges::any_of(
          plans, [&](const auto& plan) { return asked(plan) && plan.basis != compare::Basis::kNone; }))
    return;
  const auto first = std::ranges::find_if(plans, asked);
  if (first == plans.end()) return;
  throw Error(Status::error(Code::kUnsupported,
                            fmt::format("compare: no plan for {} can be priced; {}: {}",
                                        comparison.topology.spec, first->entry.name, first->reason)));
}

void run_theory(const CompareArguments& arguments) {
  compare::TheoryInput input = arguments.given;
  // The whole range of the other table is no answer to "how large": VGG-19 is, as in the papers.
  if (!arguments.bytes.empty()) {
    const auto sizes =
        value_or_throw(compare::parse_size_range(arguments.bytes, factor_of(arguments.factor)));
    if (sizes.size() > 1) {
      throw Error(Status::error(Code::kInvalidArgument,
                                fmt::format("--bytes: {} are {} sizes; --theory takes one, such as 64M",
                                            topology::in_quotes(arguments.bytes), sizes.size())));
    }
    input.bytes = static_cast<double>(sizes.front());
  }
  input.bytes_per_s = rate_of(arguments.rate);
  input.hop_seconds = arguments.latency_us * 1e-6;
  const compare::Theory theory = value_or_throw(compare::make_theory(input));
  print(arguments.format == "text" ? compare::theory_text(theory) : compare::theory_json(theory));
}

void run_compare(CompareArguments arguments) {
  if (arguments.theory) {
    run_theory(arguments);
    return;
  }
  if (arguments.bytes.empty()) arguments.bytes = kDefaultBytes;
  if (arguments.topologies.empty()) {
    if (std::string topology = topology_or_environment(""); !topology.empty())
      arguments.topologies.push_back(std::move(topology));
  }
  if (arguments.topologies.empty()) {
    throw Error(Status::error(Code::kInvalidArgument,
                              "compare: no topology; give -t SPEC (such as bcube:3,1) or set HIPS_TOPO"));
  }
  const auto sizes = value_or_throw(compare::parse_size_range(arguments.bytes, factor_of(arguments.factor)));
  // All that a user may have written wrongly first: a table that breaks off helps nobody.
  std::vector<Topology> topologies;
  std::vector<std::vector<compare::Entry>> entries;
  for (const std::string& spec : arguments.topologies) {
    const Topology& topology = topologies.emplace_back(load_for_job(spec, arguments.job).topology);
    if (topology.spec.starts_with(topology::kPartOf)) {
      throw Error(Status::error(
          Code::kUnsupported,
          fmt::format("compare: no spec describes this part of {}; write it to a file: hips topo -t {} ... "
                      "--format yaml > part.yaml, and compare that",
                      topology::in_quotes(spec), spec)));
    }
    auto& rows = entries.emplace_back(value_or_throw(compare::parse_entries(arguments.algorithms, topology)));
    if (!arguments.baseline) continue;
    for (compare::Entry& row : compare::baseline_entries(topology)) rows.push_back(std::move(row));
  }
  std::vector<compare::Comparison> comparisons;
  for (std::size_t i = 0; i < topologies.size(); ++i) {
    comparisons.push_back(compare::compare(topologies[i], entries[i], sizes));
    check_priced(comparisons.back());
  }
  if (arguments.format == "text") {
    for (const compare::Comparison& comparison : comparisons) print(compare::report_text(comparison) + "\n");
  }
  print(arguments.format == "text" ? compare::legend_text(comparisons) : compare::report_json(comparisons));
}

}  // namespace

void add_compare(CLI::App& app) {
  auto arguments = std::make_shared<CompareArguments>();
  CLI::App* command = app.add_subcommand(
      "compare", "How long each algorithm would take for each size, and which is the best");
  command->footer(kCompareFooter);
  CLI::Option* const topology = command
                                    ->add_option("-t,--topology", arguments->topologies,
                                                 "Topology, such as bcube:3,1; may be given several times")
                                    ->type_name("SPEC")
                                    ->expected(1)
                                    ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_job_options(*command, arguments->job);
  command->add_option("-b,--bytes", arguments->bytes, "Sizes of the vector, of float32")
      ->type_name("SIZE[:SIZE],...")
      ->default_str(kDefaultBytes);
  command
      ->add_option("-f,--factor", arguments->factor, "From one size of a range to the next, usually 2 or 4")
      ->type_name("NUMBER")
      ->capture_default_str();
  command->add_option("-a,--algorithms", arguments->algorithms, "all, or names of hips plan --list")
      ->type_name("NAME,...")
      ->capture_default_str();
  command->add_flag("--baseline", arguments->baseline, "Also flat algorithms with one NIC and with all");
  CLI::Option* const theory =
      command->add_flag("--theory", arguments->theory, "The closed forms instead, for N, n, K, W and B")
          ->excludes(topology);
  compare::TheoryInput& given = arguments->given;
  command->add_option("-N,--servers", given.servers, "--theory: servers, N; n^K")->needs(theory);
  command->add_option("-n,--radix", given.radix, "--theory: radix or side, n")
      ->needs(theory)
      ->capture_default_str();
  command->add_option("-K,--nics", given.nics, "--theory: levels, NICs of a server, or dimensions, K")
      ->needs(theory)
      ->capture_default_str();
  command->add_option("-P,--leaders", given.leaders, "--theory: dedicated servers of the flat PS, P")
      ->needs(theory)
      ->capture_default_str();
  command->add_option("-B,--rate", arguments->rate, "--theory: of a NIC, B")
      ->type_name("RATE")
      ->needs(theory)
      ->capture_default_str();
  command->add_option("--latency", arguments->latency_us, "--theory: of a step, in us")
      ->needs(theory)
      ->capture_default_str();
  command->add_option("--format", arguments->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->callback([arguments] { run_compare(*arguments); });
}

}  // namespace hips::cli
