#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <hips/topology.hpp>

#include "lib/base/counted.hpp"
#include "lib/base/result.hpp"
#include "lib/cost/select.hpp"
#include "lib/cost/select_table.hpp"
#include "tools/hips/commands/info.hpp"
#include "tools/hips/commands/info_select_job.hpp"
#include "tools/hips/common/reading_options.hpp"
#include "tools/hips/common/servers_memory.hpp"
#include "tools/hips/common/settings.hpp"
#include "tools/hips/common/size_text.hpp"
#include "tools/hips/common/topology_option.hpp"
#include "topology/formats/parse.hpp"

namespace hips::cli {
namespace {

struct SelectArguments {
  std::string topology;
  std::string transport;
  bool json = false;
};

/// The plans of HIPS_SELECT_TABLE for a topology.
struct TablePlans {
  std::string path;  ///< "" if none is named
  std::vector<cost::ChosenPlan> plans;
};

TablePlans table_for(const Topology& topology) {
  TablePlans table;
  const Config& config = settings();
  if (!config.select_table) return table;
  table.path = *config.select_table;
  const auto read = value_or_throw(cost::SelectTable::read(table.path));
  if (const auto* plans = read.find(topology.spec)) table.plans = *plans;
  return table;
}

void print_table(const Topology& topology, const TablePlans& table) {
  if (table.path.empty()) return;
  fmt::print("HIPS_SELECT_TABLE={} ", table.path);
  if (table.plans.empty()) {
    fmt::print("has no line for {}; the model selects:\n\n", topology.spec);
    return;
  }
  fmt::print("selects for {}:\n\n  {:>10}  plan\n", topology.spec, "up to");
  for (const cost::ChosenPlan& plan : table.plans) {
    fmt::print("  {:>10}  {}{}{}\n",
               plan.up_to_bytes == UINT64_MAX ? "any" : exact_size_text(plan.up_to_bytes), plan.algorithm,
               plan.pattern.empty() ? "" : ":", plan.pattern);
  }
  fmt::print("\nWithout it, the model would select:\n\n");
}

const char* over_text(const cost::Medium& medium) {
  return medium.message_seconds == cost::Medium::kSockets.message_seconds ? " over TCP" : "";
}

void print_text(const Topology& topology, const cost::Selection& selection) {
  fmt::print("{}, {}, if no algorithm or pattern is named:\n\n", topology.name,
             counted(topology.num_ranks(), "rank"));
  std::size_t widest = 0;
  for (const auto& candidate : selection.candidates) widest = std::max(widest, candidate.name.size());
  for (const auto& candidate : selection.candidates) {
    const PlanShape& shape = candidate.builder->shape();
    fmt::print("  {:<{}}  {} messages per rank, {} in sequence{}\n", candidate.name, widest,
               candidate.num_messages, shape.num_steps,
               candidate.excluded.empty() ? "" : "; excluded: " + candidate.excluded);
  }
  fmt::print("\n  {:>8}  {:<{}}", "size", "plan", widest);
  for (const auto& candidate : selection.candidates)
    fmt::print("  {:>{}}", candidate.name + " (us)", candidate.name.size() + 5);
  fmt::print("\n");
  for (const std::uint64_t bytes : sizes_of_tables()) {
    fmt::print("  {:>8}  {:<{}}", size_text(bytes), selection.of(bytes).name, widest);
    for (const auto& candidate : selection.candidates)
      fmt::print("  {:>{}.1f}", 1e6 * cost::expected_seconds(topology, selection.medium, candidate, bytes),
                 candidate.name.size() + 5);
    fmt::print("\n");
  }
  fmt::print(
      "\nTimes are estimates of the model: latency of the hops, the busiest link at the topology's rates (10 "
      "%\n"
      "more for incast), and {} us per message{}. A plan is preferred to those left of it if it saves at "
      "least\n"
      "1 %. Every server is assumed to be a node. Ranks of one node use no plan unless a topology is named, "
      "and\n"
      "need no rings.\n",
      selection.medium.message_seconds * 1e6, over_text(selection.medium));
}

void print_json(const Topology& topology, const cost::Selection& selection, const TablePlans& table) {
  nlohmann::ordered_json json = {{"topology", topology.spec},
                                 {"num_ranks", topology.num_ranks()},
                                 {"message_seconds", selection.medium.message_seconds}};
  if (!table.path.empty()) {
    auto& rows =
        (json["table"] = {{"file", table.path}, {"plans", nlohmann::ordered_json::array()}})["plans"];
    for (const cost::ChosenPlan& plan : table.plans) {
      nlohmann::ordered_json row = {
          {"algorithm", plan.algorithm}, {"pattern", nullptr}, {"up_to_bytes", nullptr}};
      if (!plan.pattern.empty()) row["pattern"] = plan.pattern;
      if (plan.up_to_bytes != UINT64_MAX) row["up_to_bytes"] = plan.up_to_bytes;
      rows.push_back(std::move(row));
    }
  }
  if (topology.ranks_per_server > 1)
    json["allreduce_between_servers"] = topology::without_node_level(topology).spec;
  json["candidates"] = nlohmann::ordered_json::array();
  for (const auto& candidate : selection.candidates) {
    const PlanShape& shape = candidate.builder->shape();
    json["candidates"].push_back({{"plan", candidate.name},
                                  {"algorithm", shape.algorithm},
                                  {"description", shape.description},
                                  {"num_messages", candidate.num_messages},
                                  {"num_steps", shape.num_steps},
                                  {"excluded", candidate.excluded}});
  }
  json["choices"] = nlohmann::ordered_json::array();
  for (const auto& choice : selection.choices) {
    nlohmann::ordered_json row = {{"plan", selection.candidates[choice.candidate].name},
                                  {"up_to_bytes", nullptr}};
    if (choice.up_to_bytes != UINT64_MAX) row["up_to_bytes"] = choice.up_to_bytes;
    json["choices"].push_back(std::move(row));
  }
  json["sizes"] = nlohmann::ordered_json::array();
  for (const std::uint64_t bytes : sizes_of_tables()) {
    auto seconds = nlohmann::ordered_json::array();
    for (const auto& candidate : selection.candidates)
      seconds.push_back(cost::expected_seconds(topology, selection.medium, candidate, bytes));
    json["sizes"].push_back(
        {{"bytes", bytes}, {"plan", selection.of(bytes).name}, {"seconds", std::move(seconds)}});
  }
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void run_select(const SelectArguments& arguments) {
  const Topology topology = parse_topology(arguments.topology);
  // Servers that do not use sockets use RDMA.
  const cost::Medium medium = arguments.transport == "tcp" ? cost::Medium::kSockets : cost::Medium::kWires;
  const cost::Selection selection = value_or_throw(cost::select(topology, medium));
  const TablePlans table = table_for(topology);
  if (arguments.json) {
    print_json(topology, selection, table);
    return;
  }
  print_table(topology, table);
  print_text(topology, selection);
  fmt::print("{}", servers_memory_text(topology));
}

}  // namespace

void add_info_select(CLI::App& info) {
  const auto arguments = std::make_shared<SelectArguments>();
  CLI::App* const select =
      info.add_subcommand("select", "Show the plan that is selected for each size, and why");
  const auto reading =
      add_topology_option(*select, arguments->topology, "Topology, such as switch:4; default HIPS_TOPO");
  select
      ->add_option("--transport", arguments->transport,
                   "Transport between servers; default HIPS_TRANSPORT, else verbs")
      ->check(CLI::IsMember({"verbs", "tcp"}));
  select->add_flag("--json", arguments->json, "Print JSON");
  select->footer(
      "As a job (mpirun --map-by ppr:1:node, srun, or HIPS_RANK, HIPS_SIZE and HIPS_ROOT) it measures the network between the\n"
      "nodes, as communicators do, and prints the plans by measured and by default constants side by side.");
  select->callback([arguments, reading] {
    JobSelectOptions in_job{.topology_words = reading->words(), .json = arguments->json};
    if (!arguments->topology.empty()) in_job.topology = arguments->topology;
    if (!arguments->transport.empty()) in_job.transport = arguments->transport;
    if (const auto code = run_select_in_job(in_job)) {
      if (*code != 0) throw CLI::RuntimeError(*code);
      return;
    }
    arguments->topology = required_topology("info select", arguments->topology);
    if (arguments->transport.empty()) arguments->transport = settings().transport;
    run_select(*arguments);
  });
}

}  // namespace hips::cli
