#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/base/config/config.hpp"
#include "lib/base/counted.hpp"
#include "lib/base/result.hpp"
#include "lib/cost/estimate.hpp"
#include "lib/plan/builder.hpp"
#include "lib/plan/check/check.hpp"
#include "lib/plan/formats/msccl/read_msccl.hpp"
#include "lib/plan/formats/plan_file.hpp"
#include "tools/hips/command.hpp"
#include "tools/hips/common/job_option.hpp"
#include "tools/hips/common/place_names.hpp"
#include "tools/hips/common/reading_options.hpp"
#include "tools/hips/common/topology_option.hpp"

namespace hips::cli {
namespace {

using plan::CheckOptions;
using plan::CheckReport;
using plan::Finding;
using plan::FindingKind;
using plan::Severity;
using plan::severity_of;

/// The size of an element, in which --bytes is counted.
constexpr std::int64_t kElementBytes = 4;

struct CheckArguments {
  std::string topology, plan_file, algorithm = "hips", patterns, bytes;
  JobArguments job;
  std::int32_t num_leaders = 0, num_rings = 0;
  std::int32_t credits = 1, segments = 1;
  bool json = false;
};

const std::string& name_of(const PlanShape& shape) {
  return shape.description.empty() ? shape.algorithm : shape.description;
}

/// The plan that was checked, and the result.
struct CheckOutcome {
  const PlanShape& shape;
  const std::optional<Topology>& topology;
  const CheckReport& report;
  double seconds = 0;
  double ratio_to_bound = 0;  ///< 0 if no topology is known or nothing is sent

  /// "HiPS, 2 lanes, mesh on both levels, on BCube(3,1)"
  [[nodiscard]] std::string title() const {
    return topology ? fmt::format("{}, on {}", name_of(shape), topology->name) : name_of(shape);
  }

  /// Why the plan is not proved: "3 errors" or "too large".
  [[nodiscard]] std::string failure() const {
    return report.only_too_large() ? "too large" : counted(report.num_errors(), "error");
  }
};

std::int64_t count_of(const std::string& bytes) {
  const std::optional<std::uint64_t> value = parse_bytes(bytes);
  if (!value) {
    throw Error(Status::error(Code::kInvalidArgument,
                              fmt::format("--bytes: invalid size \"{}\"; write 4096, 64K, 4M or 1G", bytes)));
  }
  if (*value > cost::kMostVectorBytes) {
    throw Error(Status::error(Code::kInvalidArgument,
                              fmt::format("--bytes: {} is above the maximum of 1024G", bytes)));
  }
  if (*value % kElementBytes != 0) {
    throw Error(Status::error(
        Code::kInvalidArgument,
        fmt::format("--bytes: {} is not a multiple of {}, the size of an element", *value, kElementBytes)));
  }
  return static_cast<std::int64_t>(*value) / kElementBytes;
}

Plan built_plan(const CheckArguments& arguments, const Topology& topology) {
  PlanRequest request;
  request.algorithm = arguments.algorithm;
  request.num_leaders = arguments.num_leaders;
  request.num_rings = arguments.num_rings;
  if (!arguments.patterns.empty())
    request.patterns = value_or_throw(plan::parse_patterns(arguments.patterns));
  if (Status status = plan::check_groups(topology, request.algorithm); !status.ok())
    throw Error(std::move(status));
  const auto builder = value_or_throw(plan::make_builder(topology, request));
  if (const std::string why = plan::too_large_to_build(*builder); !why.empty()) {
    throw Error(Status::error(
        Code::kUnsupported, fmt::format("check: {}, on {}: {}: {}", name_of(builder->shape()), topology.name,
                                        to_string(FindingKind::kTooLarge), why)));
  }
  return plan::build_all(*builder);
}

Plan stored_plan(const CheckArguments& arguments, const std::optional<Topology>& topology) {
  Plan plan = value_or_throw(plan::read_plan_file(arguments.plan_file)).plan;
  if (topology && topology->num_ranks() != plan.shape.num_ranks) {
    throw Error(Status::error(Code::kInvalidArgument,
                              fmt::format("{} is a plan for {} ranks, but {} has {}", arguments.plan_file,
                                          plan.shape.num_ranks, topology->spec, topology->num_ranks())));
  }
  if (topology) plan::set_rails(*topology, plan);
  return plan;
}

void print_text(const CheckOutcome& outcome, const PlaceNames& names) {
  const CheckReport& report = outcome.report;
  const std::string size =
      fmt::format("{}, {}, {}", counted(report.num_ranks, "rank"), counted(report.num_blocks, "block"),
                  counted(report.num_messages, "message"));
  if (report.ok()) {
    const std::string segments =
        report.num_segments == 1 ? "" : fmt::format(" and {} segments", report.num_segments);
    fmt::print(
        "proved: {}: {}; every input reduced exactly once, no deadlock with {} or more{}, no overlapping "
        "access in place or out of place ({:.2f} s)\n",
        outcome.title(), size, counted(report.num_credits, "credit"), segments, outcome.seconds);
  } else {
    // Nothing was counted if the plan is malformed or too large.
    fmt::print("{}: {}: {}{} ({:.2f} s)\n", report.only_too_large() ? "not checked" : "wrong",
               outcome.title(), report.num_ranks == 0 ? "" : size + "; ", outcome.failure(), outcome.seconds);
  }
  std::vector<std::int64_t> listed(plan::kNumFindingKinds);
  for (const Finding& finding : report.findings) ++listed[static_cast<std::size_t>(finding.kind)];
  for (const Finding& finding : report.findings) {
    fmt::print("{}: {}: {}\n", severity_of(finding.kind) == Severity::kError ? "error" : "note",
               to_string(finding.kind), names(finding.text));
    for (const std::string& line : finding.example) fmt::print("    {}\n", names(line));
  }
  for (std::size_t kind = 0; kind < plan::kNumFindingKinds; ++kind) {
    const std::int64_t more = report.num_found[kind] - listed[kind];
    if (more > 0) fmt::print("and {} more: {}\n", more, to_string(static_cast<plan::FindingKind>(kind)));
  }
  if (outcome.ratio_to_bound > 0) {
    fmt::print(
        "note: ratio to bound: the busiest link transfers {:.3f} times the bytes that any allreduce must\n",
        outcome.ratio_to_bound);
  }
}

nlohmann::json json_of(const Finding& finding) {
  nlohmann::json json = {
      {"severity", severity_of(finding.kind) == Severity::kError ? "error" : "note"},
      {"kind", to_string(finding.kind)},
      {"text", finding.text},
  };
  const auto add = [&](const char* key, std::int64_t value) {
    if (value >= 0) json[key] = value;
  };
  add("rank", finding.where.rank);
  add("step", finding.where.step);
  add("lane", finding.where.lane);
  add("stage", finding.where.stage);
  add("round", finding.where.round);
  add("block", finding.where.block);
  if (!finding.example.empty()) json["example"] = finding.example;
  return json;
}

void print_json(const CheckOutcome& outcome) {
  const CheckReport& report = outcome.report;
  nlohmann::json json = {
      {"proved", report.ok()},
      {"refuted", !report.ok() && !report.only_too_large()},
      {"algorithm", outcome.shape.algorithm},
      {"description", outcome.shape.description},
      {"ranks", report.num_ranks},
      {"blocks", report.num_blocks},
      {"steps", report.num_steps},
      {"messages", report.num_messages},
      {"credits", report.num_credits},
      {"segments", report.num_segments},
      {"errors", report.num_errors()},
      {"seconds", outcome.seconds},
      {"findings", nlohmann::json::array()},
  };
  if (outcome.topology) json["topology"] = outcome.topology->spec;
  if (outcome.ratio_to_bound > 0) json["ratio_to_bound"] = outcome.ratio_to_bound;
  for (const Finding& finding : report.findings) json["findings"].push_back(json_of(finding));
  // Names in a stored plan need not be UTF-8.
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

void run_check(const CheckArguments& arguments) {
  const auto began = std::chrono::steady_clock::now();
  topology::TopologyFile file;
  std::optional<Topology> topology;
  if (!arguments.topology.empty()) {
    file = load_for_plan(arguments.topology, arguments.job);
    topology = file.topology;
  } else if (!arguments.job.hostfile.empty() || !arguments.job.nodelist.empty()) {
    throw Error(Status::error(Code::kInvalidArgument,
                              "check: --hostfile and --nodelist select servers of a topology; add -t"));
  }
  CheckOptions options;
  if (!arguments.bytes.empty()) options.count = count_of(arguments.bytes);
  options.credits = arguments.credits;
  options.segments = arguments.segments;
  if (topology) options.topology = &*topology;

  const PlaceNames names(file);
  const Plan plan = arguments.plan_file.empty()
                        ? names.in_errors_of([&] { return built_plan(arguments, *topology); })
                        : stored_plan(arguments, topology);
  const CheckReport report = plan::check(plan, options);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  CheckOutcome outcome{plan.shape, topology, report, took.count()};
  if (report.ok() && topology && options.count.value_or(1) > 0) {
    constexpr std::int64_t kLargeCount = std::int64_t{1} << 30;
    outcome.ratio_to_bound =
        cost::estimate(*topology, plan.shape, plan.programs, {.count = options.count.value_or(kLargeCount)})
            .ratio;
  }
  if (arguments.json) {
    print_json(outcome);
  } else {
    print_text(outcome, names);
  }
  if (!report.ok()) {
    std::fflush(stdout);
    throw Error(Status::error(report.only_too_large() ? Code::kUnsupported : Code::kMismatch,
                              fmt::format("check: {}: {}", outcome.title(), outcome.failure())));
  }
}

}  // namespace

void add_check(CLI::App& app) {
  CLI::App* check = app.add_subcommand(
      "check", "Prove a plan, or show what is wrong with it (exit code 1; 2 if the plan cannot be checked)");
  const CLI::Range at_least_one(1, INT32_MAX);
  auto arguments = std::make_shared<CheckArguments>();
  add_topology_option(*check, arguments->topology,
                      "Topology, such as bcube:3,1; default without --plan: HIPS_TOPO");
  add_job_options(*check, arguments->job);
  CLI::Option* topology = check->get_option("--topology");
  CLI::Option* file =
      check->add_option("PLAN,--plan", arguments->plan_file,
                        "Check a stored plan (JSON, or XML of MSCCL) instead of building one");
  CLI::Option* algorithm =
      check->add_option("-a,--algorithm", arguments->algorithm, "Algorithm to build")->capture_default_str();
  CLI::Option* patterns = check->add_option("--pattern", arguments->patterns,
                                            "mesh, ring or ps:P, one for all levels or one per level");
  CLI::Option* leaders =
      check->add_option("--leaders", arguments->num_leaders, "flat-ps: number of leader servers; default 1")
          ->check(at_least_one);
  CLI::Option* rings =
      check->add_option("--rings", arguments->num_rings, "flat-ring: NICs of each server to use; default all")
          ->check(at_least_one);
  check->add_option(
      "-b,--bytes", arguments->bytes,
      "Size of a vector of 4-byte elements; empty blocks are not sent (default: no block is empty)");
  check
      ->add_option("--credits", arguments->credits,
                   "Messages or segments that a receiver buffers for each channel")
      ->check(at_least_one)
      ->capture_default_str();
  check->add_option("--segments", arguments->segments, "Number of segments of the longest message")
      ->check(at_least_one)
      ->capture_default_str();
  check->add_flag("--json", arguments->json, "Print JSON");
  for (CLI::Option* option : {algorithm, patterns, leaders, rings}) file->excludes(option);
  check->callback([arguments, topology, file] {
    // A stored plan may be for another topology than HIPS_TOPO.
    if (topology->count() == 0 && file->count() == 0) arguments->topology = topology_or_environment("");
    if (arguments->topology.empty() && file->count() == 0) {
      throw Error(Status::error(Code::kInvalidArgument,
                                "check: no topology and no plan; give -t SPEC (such as bcube:3,1), set "
                                "HIPS_TOPO, or give a stored plan with --plan FILE"));
    }
    run_check(*arguments);
  });
}

}  // namespace hips::cli
