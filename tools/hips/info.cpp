#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <hips/topology.hpp>

#include "lib/base/result.hpp"
#include "lib/cost/select.hpp"
#include "tools/hips/command.hpp"
#include "tools/hips/topology_option.hpp"

namespace hips::cli {
namespace {

struct SelectArguments {
  std::string topology;
  bool json = false;
};

constexpr std::uint64_t kLeastBytes = 4, kMostBytes = std::uint64_t{1} << 30U;

std::string size_text(std::uint64_t bytes) {
  for (const auto& [unit, factor] :
       {std::pair("GiB", 1U << 30U), std::pair("MiB", 1U << 20U), std::pair("KiB", 1U << 10U)}) {
    if (bytes >= factor) return fmt::format("{} {}", bytes / factor, unit);
  }
  return fmt::format("{} B", bytes);
}

void print_text(const Topology& topology, const cost::Selection& selection) {
  fmt::print("{}, {} ranks, where no algorithm or pattern is named:\n\n", topology.name,
             topology.num_ranks());
  std::size_t widest = 0;
  for (const auto& candidate : selection.candidates) widest = std::max(widest, candidate.name.size());
  for (const auto& candidate : selection.candidates) {
    const PlanShape& shape = candidate.builder->shape();
    fmt::print("  {:<{}}  {} messages of a rank, {} one after the other{}\n", candidate.name, widest,
               candidate.num_messages, shape.num_steps,
               candidate.excluded.empty() ? "" : "; not taken: " + candidate.excluded);
  }
  fmt::print("\n  {:>8}  {:<{}}", "size", "plan", widest);
  for (const auto& candidate : selection.candidates)
    fmt::print("  {:>{}}", candidate.name + " (us)", candidate.name.size() + 5);
  fmt::print("\n");
  for (std::uint64_t bytes = kLeastBytes; bytes <= kMostBytes; bytes *= 4) {
    fmt::print("  {:>8}  {:<{}}", size_text(bytes), selection.of(bytes).name, widest);
    for (const auto& candidate : selection.candidates)
      fmt::print("  {:>{}.1f}", 1e6 * cost::expected_seconds(topology, selection.medium, candidate, bytes),
                 candidate.name.size() + 5);
    fmt::print("\n");
  }
  fmt::print(
      "\nTimes are the model's: hops, busiest link at the topology's rates (a tenth more where several send "
      "to "
      "one NIC\nat once), and 0.5 us for each message. Servers are hosts of their own here; of ranks that "
      "share a "
      "host, those for\nwhich no topology is named use no plan, and others need no rings.\n");
}

void print_json(const Topology& topology, const cost::Selection& selection) {
  nlohmann::ordered_json json = {{"topology", topology.spec}, {"num_ranks", topology.num_ranks()}};
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
  for (std::uint64_t bytes = kLeastBytes; bytes <= kMostBytes; bytes *= 4) {
    auto seconds = nlohmann::ordered_json::array();
    for (const auto& candidate : selection.candidates)
      seconds.push_back(cost::expected_seconds(topology, selection.medium, candidate, bytes));
    json["sizes"].push_back(
        {{"bytes", bytes}, {"plan", selection.of(bytes).name}, {"seconds", std::move(seconds)}});
  }
  fmt::print("{}\n", json.dump(2));
}

void run_select(const SelectArguments& arguments) {
  if (arguments.topology.empty()) {
    throw Error(Status::error(
        Code::kInvalidArgument,
        "info select: no topology is named; give one with -t, such as -t switch:4, or in HIPS_TOPO"));
  }
  const Topology topology = parse_topology(arguments.topology);
  const cost::Selection selection = value_or_throw(cost::select(topology, cost::Medium::kWires));
  arguments.json ? print_json(topology, selection) : print_text(topology, selection);
}

}  // namespace

void add_info(CLI::App& app) {
  CLI::App* const info = app.add_subcommand("info", "What HiPS decides by itself, and why");
  info->require_subcommand(1);
  const auto arguments = std::make_shared<SelectArguments>();
  CLI::App* const select = info->add_subcommand("select", "Which plan carries a call of which size");
  select->add_option("-t,--topology", arguments->topology, "Topology, such as switch:4; default HIPS_TOPO")
      ->type_name("SPEC");
  select->add_flag("--json", arguments->json, "Write JSON");
  select->callback([arguments] {
    arguments->topology = topology_or_environment(arguments->topology);
    run_select(*arguments);
  });
}

}  // namespace hips::cli
