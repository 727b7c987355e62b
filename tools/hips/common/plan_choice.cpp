#include "tools/hips/common/plan_choice.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "lib/base/config/config.hpp"
#include "lib/base/result.hpp"
#include "lib/comm/setup/rank_order.hpp"
#include "lib/cost/select.hpp"
#include "lib/cost/select_table.hpp"
#include "lib/plan/builder.hpp"
#include "lib/plan/finished_builder.hpp"
#include "lib/plan/formats/msccl/read_msccl.hpp"
#include "lib/plan/formats/plan_file.hpp"
#include "tools/hips/common/settings.hpp"

namespace hips::cli {
namespace {

bool names_plan(const NamedPlan& named) {
  return !named.algorithm.empty() || !named.patterns.empty() || named.num_leaders || named.num_rings;
}

/// The plan that is named; nullopt if HiPS is to choose.
std::optional<PlanRequest> request_of(const NamedPlan& named, const Config& config) {
  const bool here = !named.algorithm.empty() || !named.patterns.empty();
  PlanRequest request;
  request.algorithm = !named.algorithm.empty() ? named.algorithm : config.algorithm.value_or("");
  bool is_named = !request.algorithm.empty();
  if (request.algorithm.empty()) request.algorithm = "hips";
  std::string patterns = named.patterns;
  // Options in the environment apply to the algorithms that take them; they are no error beside another
  // algorithm on the command line.
  if (patterns.empty() && request.algorithm == "hips") patterns = config.pattern.value_or("");
  if (!patterns.empty()) request.patterns = value_or_throw(plan::parse_patterns(patterns));
  const auto number = [&](const std::optional<std::int32_t>& option, std::int32_t variable,
                          std::string_view taker) {
    if (option) return *option;
    return !here || request.algorithm == taker ? variable : 0;
  };
  request.num_leaders = number(named.num_leaders, config.num_leaders, "flat-ps");
  request.num_rings = number(named.num_rings, config.num_rings, "flat-ring");
  is_named = is_named || !patterns.empty() || request.num_leaders != 0 || request.num_rings != 0;
  return is_named ? std::optional(std::move(request)) : std::nullopt;
}

/// The plan of a selection table; no builder if the table has none or leaves this size to HiPS.
PlanChoice choose_by_table(const Topology& topology, const std::string& path, std::uint64_t bytes) {
  const auto table = value_or_throw(cost::SelectTable::read(path));
  const auto* const plans = table.find(topology.spec);
  if (plans == nullptr) return {};
  const auto plan =
      std::ranges::find_if(*plans, [&](const cost::ChosenPlan& row) { return bytes <= row.up_to_bytes; });
  if (plan->algorithm == cost::ChosenPlan::kAuto) return {};
  PlanRequest request{.algorithm = plan->algorithm};
  std::string name = plan->algorithm;
  if (!plan->pattern.empty()) {
    request.patterns = value_or_throw(plan::parse_patterns(plan->pattern));
    name += ":" + plan->pattern;
  }
  return {.builder = value_or_throw(plan::make_builder(topology, request)),
          .selected = name,
          .selected_on_node = name,
          .setting = "HIPS_SELECT_TABLE=" + path};
}

/// The plan of HIPS_PLAN_FILE, proved on the topology as a communicator does.
PlanChoice choose_stored(const Topology& topology, const Config& config) {
  const std::string setting = "HIPS_PLAN_FILE=" + *config.plan_file;
  if (config.algorithm || config.pattern || config.num_leaders > 0 || config.num_rings > 0) {
    throw Error(Status::error(
        Code::kInvalidArgument,
        fmt::format(
            "{} already names the plan; unset HIPS_ALGORITHM, HIPS_PATTERN, HIPS_LEADERS and HIPS_RINGS",
            setting)));
  }
  if (config.reproducible == Reproducible::kAny) {
    throw Error(Status::error(
        Code::kInvalidArgument,
        fmt::format("{} already names the plan; unset HIPS_REPRODUCIBLE=any, which has its own", setting)));
  }
  Plan plan = value_or_throw(plan::read_plan_file(*config.plan_file)).plan;
  if (plan.shape.num_ranks != topology.num_ranks()) {
    throw Error(Status::error(
        Code::kUnsupported,
        fmt::format("{} is a plan for {} ranks, but {} has {}; unset it or name an algorithm with -a",
                    setting, plan.shape.num_ranks, topology.spec, topology.num_ranks())));
  }
  plan::set_rails(topology, plan);
  if (Status status = plan::prove_stored(*config.plan_file, plan, topology); !status.ok())
    throw Error(std::move(status));
  std::string name = plan.shape.algorithm;
  return {.builder = std::make_unique<plan::FinishedBuilder>(std::move(plan)),
          .selected = std::move(name),
          .setting = setting,
          .for_all_sizes = true};
}

/// The plan of HIPS_REPRODUCIBLE=any.
PlanChoice choose_rank_order(const Topology& topology, const Config& config) {
  if (config.algorithm || config.pattern || config.num_leaders > 0 || config.num_rings > 0) {
    throw Error(
        Status::error(Code::kInvalidArgument,
                      "HIPS_REPRODUCIBLE=any has a plan of its own; unset HIPS_ALGORITHM, HIPS_PATTERN, "
                      "HIPS_LEADERS and HIPS_RINGS, or set HIPS_REPRODUCIBLE=run"));
  }
  if (Status status = plan::check_groups(topology, "flat-mesh"); !status.ok()) throw Error(std::move(status));
  auto builder = value_or_throw(comm::make_rank_order(topology)).builder;
  std::string name = builder->shape().algorithm;
  return {.builder = std::move(builder),
          .selected = std::move(name),
          .setting = "HIPS_REPRODUCIBLE=any",
          .for_all_sizes = true};
}

}  // namespace

std::string topology_of_plan_file(const NamedPlan& named) {
  const Config& config = settings();
  if (!config.plan_file || names_plan(named)) return "";
  return value_or_throw(plan::read_plan_file(*config.plan_file)).topology;
}

PlanChoice choose_plan(const Topology& topology, const NamedPlan& named, std::uint64_t bytes) {
  const Config& config = settings();
  if (!names_plan(named) && topology.num_ranks() > 1) {
    if (config.plan_file) return choose_stored(topology, config);
    if (config.reproducible == Reproducible::kAny) return choose_rank_order(topology, config);
  }
  if (const auto request = request_of(named, config)) {
    if (Status sound = plan::check_groups(topology, request->algorithm); !sound.ok())
      throw Error(std::move(sound));
    return {.builder = value_or_throw(plan::make_builder(topology, *request))};
  }
  if (config.select_table && topology.num_ranks() > 1) {
    PlanChoice chosen = choose_by_table(topology, *config.select_table, bytes);
    if (chosen.builder) return chosen;
  }
  const bool sockets = config.transport == "tcp";
  const cost::Medium& wires = sockets ? cost::Medium::kSockets : cost::Medium::kWires;
  const cost::Medium& memory = sockets ? cost::Medium::kSocketsOnNode : cost::Medium::kMemory;
  auto candidates = value_or_throw(cost::candidates(topology));
  const std::size_t on_node = cost::choose(topology, memory, candidates, bytes);
  cost::Candidate& selected = candidates[cost::choose(topology, wires, candidates, bytes)];
  return {.builder = std::move(selected.builder),
          .selected = selected.name,
          .selected_on_node = candidates[on_node].name};
}

}  // namespace hips::cli
