#include "tools/hips/plan_choice.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "lib/base/config.hpp"
#include "lib/base/result.hpp"
#include "lib/cost/select.hpp"
#include "lib/cost/select_table.hpp"
#include "lib/plan/builder.hpp"
#include "tools/hips/settings.hpp"

namespace hips::cli {
namespace {

/// What is named; nothing where the choice is left to HiPS.
std::optional<PlanRequest> request_of(const NamedPlan& named, const Config& config) {
  const bool here = !named.algorithm.empty() || !named.patterns.empty();
  PlanRequest request;
  request.algorithm = !named.algorithm.empty() ? named.algorithm : config.algorithm.value_or("");
  bool is_named = !request.algorithm.empty();
  if (request.algorithm.empty()) request.algorithm = "hips";
  std::string patterns = named.patterns;
  // What the environment says beside an algorithm is meant for those that take it, and no mistake beside
  // others that the command line names.
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

/// The plan of a table; no builder where it has none, or leaves the size to HiPS.
ChosenPlan choose_by_table(const Topology& topology, const std::string& path, std::uint64_t bytes) {
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
  return {value_or_throw(plan::make_builder(topology, request)), name, name, path};
}

}  // namespace

ChosenPlan choose_plan(const Topology& topology, const NamedPlan& named, std::uint64_t bytes) {
  const Config& config = settings();
  if (const auto request = request_of(named, config)) {
    if (Status sound = plan::check_groups(topology, request->algorithm); !sound.ok())
      throw Error(std::move(sound));
    return {value_or_throw(plan::make_builder(topology, *request)), "", "", ""};
  }
  if (config.select_table && topology.num_ranks() > 1) {
    ChosenPlan chosen = choose_by_table(topology, *config.select_table, bytes);
    if (chosen.builder) return chosen;
  }
  const bool sockets = config.transport == "tcp";
  const cost::Medium& wires = sockets ? cost::Medium::kSockets : cost::Medium::kWires;
  const cost::Medium& memory = sockets ? cost::Medium::kSocketsOnNode : cost::Medium::kMemory;
  auto candidates = value_or_throw(cost::candidates(topology));
  const std::size_t on_host = cost::choose(topology, memory, candidates, bytes);
  cost::Candidate& selected = candidates[cost::choose(topology, wires, candidates, bytes)];
  return {std::move(selected.builder), selected.name, candidates[on_host].name, ""};
}

}  // namespace hips::cli
