#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "lib/base/counted.hpp"
#include "lib/base/result.hpp"
#include "tools/hips/command.hpp"
#include "tools/hips/common/reading_options.hpp"
#include "tools/hips/health/predicted.hpp"
#include "tools/hips/health/report.hpp"
#include "topology/formats/topology_file.hpp"
#include "topology/health/cabling_of.hpp"
#include "topology/health/difference.hpp"
#include "topology/health/health.hpp"
#include "topology/levels.hpp"

namespace hips::cli {
namespace {

constexpr const char* kDiffFooter =
    R"(OLD and NEW are files, folders or specs, as hips topo takes them. Servers, switches and ports are compared by their names.
If only one of the two has the names of switches, the cables of each server are counted and their rates compared.

Exit code: 0 the same, 1 different, 2 an error.

JSON keys: same shape_before shape_now servers_gone[] servers_new[] switches_gone[] switches_new[] cables_gone[] cables_new[]
  moved[] rates[]{cable before_bytes_per_s now_bytes_per_s} level_rates[]{level before_bytes_per_s now_bytes_per_s}
  nics[]{server before now} bytes seconds_before seconds_now
)";

constexpr int kDiffers = 1;

struct DiffOptions {
  std::string before, now, format = "text";
};

struct Side {
  topology::TopologyFile file;
  topology::Cabling cabling;
  bool names_switches = false;
  std::optional<double> seconds;
};

Side read_side(const std::string& spec) {
  Side side;
  side.file = value_or_throw(topology::load_topology(spec));
  if (side.file.topology.num_links > health::kMostCables)
    throw Error(
        Status::error(Code::kUnsupported, fmt::format("topo diff: {} has {} cables (valid: up to {})", spec,
                                                      side.file.topology.num_links, health::kMostCables)));
  side.cabling = topology::cabling_of(side.file);
  side.names_switches = side.file.cabling.value != nullptr || !side.file.told.switch_names.empty() ||
                        side.file.topology.family == Family::kGraph;
  side.seconds = health::predicted_seconds(side.file.topology);
  return side;
}

/// The shape without rates: "Leaf-Spine(3,6,2), 16 of 18 servers".
const std::string& shape(const Side& side) {
  return side.file.topology.name;
}

void print_names(char sign, const char* what, const std::vector<std::string>& names) {
  for (const std::string& name : names) fmt::print("{} {} {}\n", sign, what, name);
}

std::string rate_or_down(double rate) {
  return rate > 0 ? health::rate_text(rate) : "down";
}

/// "Leaf-Spine(3,6,2) -> the same without server n7".
std::string shape_change(const Side& before, const Side& now, const topology::CablingDifference& difference) {
  const Topology &old_one = before.file.topology, &new_one = now.file.topology;
  const bool only_servers = old_one.family == new_one.family && old_one.levels == new_one.levels &&
                            difference.switches_gone.empty() && difference.switches_new.empty();
  const auto change = [&](const char* how, const std::vector<std::string>& names) {
    return fmt::format("shape {} -> the same {} server{} {}", shape(before), how, names.size() > 1 ? "s" : "",
                       fmt::join(names, " "));
  };
  constexpr std::size_t kMostNamed = 6;
  if (only_servers && difference.servers_new.empty() && !difference.servers_gone.empty() &&
      difference.servers_gone.size() <= kMostNamed)
    return change("without", difference.servers_gone);
  if (only_servers && difference.servers_gone.empty() && !difference.servers_new.empty() &&
      difference.servers_new.size() <= kMostNamed)
    return change("with", difference.servers_new);
  return fmt::format("shape {} -> {}", shape(before), shape(now));
}

/// A level whose rate was told on both sides, and differs; of its cables none was compared.
struct LevelRateChange {
  std::string name;
  double before = 0, now = 0;
};

std::vector<LevelRateChange> level_rates(const Side& before, const Side& now,
                                         const topology::CablingDifference& difference) {
  std::vector<LevelRateChange> result;
  const auto old_levels = topology::network_levels(before.file.topology);
  const auto new_levels = topology::network_levels(now.file.topology);
  if (shape(before) != shape(now) || old_levels.size() != new_levels.size()) return result;
  for (std::size_t i = 0; i < new_levels.size(); ++i) {
    const LevelRateChange rates{new_levels[i].name, old_levels[i].bandwidth_bytes_per_s,
                                new_levels[i].bandwidth_bytes_per_s};
    const bool is_assumed =
        before.file.told.assumed_rates.contains(i) || now.file.told.assumed_rates.contains(i);
    const bool is_printed = std::ranges::any_of(difference.rates, [&](const auto& cable) {
      return cable.before == rates.before && cable.now == rates.now;
    });
    if (rates.before != rates.now && !is_assumed && !is_printed) result.push_back(rates);
  }
  return result;
}

void print_text(const Side& before, const Side& now, const topology::CablingDifference& difference) {
  print_names('-', "server", difference.servers_gone);
  print_names('+', "server", difference.servers_new);
  print_names('-', "switch", difference.switches_gone);
  print_names('+', "switch", difference.switches_new);
  print_names('-', "cable", difference.cables_gone);
  print_names('+', "cable", difference.cables_new);
  print_names('~', "cable", difference.moved);
  for (const auto& one : difference.rates)
    fmt::print("~ cable {}: {} -> {}\n", one.cable, rate_or_down(one.before), rate_or_down(one.now));
  for (const LevelRateChange& one : level_rates(before, now, difference))
    fmt::print("~ rate of level {}: {} -> {}\n", one.name, health::rate_text(one.before),
               health::rate_text(one.now));
  for (const auto& one : difference.nics)
    fmt::print("~ server {}: {} -> {}\n", one.name, one.before, counted(one.now, "NIC"));
  if (shape(before) != shape(now)) fmt::print("~ {}\n", shape_change(before, now, difference));
  if (!before.seconds || !now.seconds) return;
  const std::string then = health::time_text(*before.seconds), today = health::time_text(*now.seconds);
  if (then != today) fmt::print("~ predicted allreduce of 16 MiB: {} -> {}\n", then, today);
}

void print_json(const Side& before, const Side& now, const topology::CablingDifference& difference,
                bool same) {
  nlohmann::ordered_json json;
  json["same"] = same;
  json["shape_before"] = shape(before);
  json["shape_now"] = shape(now);
  json["servers_gone"] = difference.servers_gone;
  json["servers_new"] = difference.servers_new;
  json["switches_gone"] = difference.switches_gone;
  json["switches_new"] = difference.switches_new;
  json["cables_gone"] = difference.cables_gone;
  json["cables_new"] = difference.cables_new;
  json["moved"] = difference.moved;
  json["rates"] = nlohmann::ordered_json::array();
  for (const auto& one : difference.rates)
    json["rates"].push_back(
        {{"cable", one.cable}, {"before_bytes_per_s", one.before}, {"now_bytes_per_s", one.now}});
  json["level_rates"] = nlohmann::ordered_json::array();
  for (const LevelRateChange& one : level_rates(before, now, difference))
    json["level_rates"].push_back(
        {{"level", one.name}, {"before_bytes_per_s", one.before}, {"now_bytes_per_s", one.now}});
  json["nics"] = nlohmann::ordered_json::array();
  for (const auto& one : difference.nics)
    json["nics"].push_back({{"server", one.name}, {"before", one.before}, {"now", one.now}});
  json["bytes"] = health::kBytes;
  json["seconds_before"] = before.seconds ? nlohmann::ordered_json(*before.seconds) : nullptr;
  json["seconds_now"] = now.seconds ? nlohmann::ordered_json(*now.seconds) : nullptr;
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

int run(const DiffOptions& options) {
  const Side before = read_side(options.before), now = read_side(options.now);
  const auto difference =
      topology::compare_cablings(before.cabling, now.cabling, before.names_switches == now.names_switches);
  const bool same =
      difference.empty() && shape(before) == shape(now) && level_rates(before, now, difference).empty();
  if (options.format == "json") {
    print_json(before, now, difference, same);
  } else {
    print_text(before, now, difference);
  }
  return same ? 0 : kDiffers;
}

}  // namespace

void add_topo_diff(CLI::App& topo) {
  auto options = std::make_shared<DiffOptions>();
  CLI::App* command = topo.add_subcommand(
      "diff", "Print what differs between two topologies: servers, switches, cables, rates, shape");
  command->add_option("OLD", options->before, "A file, a folder or a spec")->required();
  command->add_option("NEW", options->now, "Another")->required();
  command->add_option("--format", options->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  add_reading_options(*command, {.topologies =
                                     [options](const ReadingArguments&) {
                                       return std::vector{options->before, options->now};
                                     },
                                 .are_one = false});
  command->footer(kDiffFooter);
  command->callback([options] {
    int code = 0;
    try {
      code = run(*options);
    } catch (const Error& error) {
      fmt::print(stderr, "hips: {}\n", error.what());
      code = 2;
    }
    if (code != 0) throw CLI::RuntimeError(code);
  });
}

}  // namespace hips::cli
