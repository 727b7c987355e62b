#include "tools/hips/common/reading_options.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hips/status.hpp>

#include "lib/base/result.hpp"
#include "lib/readers/cabling_files.hpp"
#include "lib/readers/told_reading.hpp"
#include "tools/hips/common/topology_option.hpp"
#include "topology/cabling/cabling.hpp"
#include "topology/cabling/rate_words.hpp"
#include "topology/spec.hpp"

// The options that tell how the files of topologies are read, which all commands share.

namespace hips::cli {
namespace {

/// The part of --help with these options.
constexpr const char* kReadingGroup = "How the file of -t is read";

[[noreturn]] void refuse_reading(std::string message) {
  throw Error(Status::error(Code::kInvalidArgument, std::move(message)));
}

/// Bytes/s by tier of cables; 0: not given.
std::vector<double> tier_rates_of(const std::vector<std::string>& texts) {
  std::vector<double> rates;
  for (const std::string& text : texts) {
    const std::size_t at = text.find('=');
    const auto* const tier = std::ranges::find(topology::kCableTiers, text.substr(0, at));
    const double given = at == std::string::npos ? 0 : topology::rate_of_words(text.substr(at + 1));
    if (tier == std::end(topology::kCableTiers) || !(given > 0))
      refuse_reading(fmt::format(
          "--rate {}: expected a tier of cables and its rate, such as leaf=100Gb, spine=400Gb or core=800Gb",
          topology::in_quotes(text)));
    const auto number = static_cast<std::size_t>(tier - std::begin(topology::kCableTiers));
    if (number < rates.size() && rates[number] > 0)
      refuse_reading(fmt::format("--rate: {} is given twice", *tier));
    rates.resize(std::max(rates.size(), number + 1));
    rates[number] = given;
  }
  return rates;
}

/// Refuses options for the cables of a file that another option says to be of another kind.
void refuse_cables_of_others(const ReadingArguments& arguments) {
  const std::string& format = arguments.format;
  std::string other;
  if (!format.empty()) other = arguments.format_option.empty() ? "--from " + format : arguments.format_option;
  if (!arguments.slurm_topology.empty()) other = "--slurm-topology " + arguments.slurm_topology;
  if (other.empty()) return;
  const bool are_cables =
      arguments.slurm_topology.empty() &&
      std::ranges::any_of(topology::cabling_formats(), [&](const auto& one) { return one.name == format; });
  if (!arguments.columns.empty() && (!are_cables || format != "table"))
    refuse_reading(fmt::format("--columns is for tables; leave out {}", other));
  for (const auto& [flag, value] :
       {std::pair("--hosts", &arguments.hosts), std::pair("--exclude", &arguments.exclude),
        std::pair("--switches", &arguments.switches)}) {
    if (!value->empty() && !are_cables)
      refuse_reading(fmt::format("{} is for lists of cables; leave out {}", flag, other));
  }
}

topology::ToldReading told_by(const ReadingArguments& arguments) {
  refuse_cables_of_others(arguments);
  topology::ToldReading told{
      .format = arguments.format,
      .slurm_topology = arguments.slurm_topology,
      .selection = {arguments.hosts, arguments.exclude, arguments.switches},
      .columns = {},
      .tier_rates = tier_rates_of(arguments.rates),
  };
  if (!arguments.columns.empty())
    told.columns = value_or_throw(topology::parse_list_columns(arguments.columns));
  return told;
}

/// Flags and values that were given.
std::vector<std::pair<const char*, std::string>> given_options(const ReadingArguments& arguments) {
  std::vector<std::pair<const char*, std::string>> given;
  for (const auto& [flag, value] :
       {std::pair("--from", &arguments.format), std::pair("--slurm-topology", &arguments.slurm_topology),
        std::pair("--hosts", &arguments.hosts), std::pair("--exclude", &arguments.exclude),
        std::pair("--switches", &arguments.switches), std::pair("--columns", &arguments.columns)}) {
    if (!value->empty()) given.emplace_back(flag, *value);
  }
  for (const std::string& rate : arguments.rates) given.emplace_back("--rate", rate);
  return given;
}

/// The paths that specs name; "" of a spec that names no file.
std::vector<std::string> paths_of(const std::vector<std::string>& specs) {
  std::vector<std::string> paths;
  for (const std::string& spec : specs) {
    const auto file = topology::file_spec(spec);
    paths.push_back(file ? topology::path_of(*file) : "");
  }
  return paths;
}

/// Whether `hips topo --format yaml` may have written the file.
bool is_topology_file(const std::string& path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (!line.empty() && line[0] != '#') return line.starts_with("hips-topology:");
  return false;
}

/// Lets the files be read as the options tell.
void apply_reading(const ReadingArguments& arguments, std::vector<std::string> specs, bool are_one) {
  const auto given = given_options(arguments);
  std::erase(specs, "");
  const bool are_files_of_one = are_one && specs.size() > 1;
  if (given.empty() && !are_files_of_one) return;
  if (specs.empty()) specs.push_back(required_topology(given.front().first, ""));
  std::vector<std::string> paths = paths_of(specs);
  if (are_files_of_one) {
    if (const auto none = std::ranges::find(paths, ""); none != paths.end())
      refuse_reading(fmt::format(
          "-t: {} topologies are given, and {} is no file; give one topology, or files with what lldpctl prints, one of "
          "each host",
          specs.size(), topology::in_quotes(specs[static_cast<std::size_t>(none - paths.begin())])));
  } else if (std::ranges::all_of(paths, [](const std::string& path) { return path.empty(); })) {
    refuse_reading(fmt::format("{} {}: {} is no file; leave {} out", given.front().first,
                               given.front().second, topology::in_quotes(specs.front()),
                               given.front().first));
  }
  std::erase(paths, "");
  const topology::ToldReading told = told_by(arguments);
  const bool is_more_than_format = given.size() > (arguments.format.empty() ? 0U : 1U);
  for (const std::string& path : paths) {
    // What `hips topo --format yaml` has made of one file may be compared with another.
    if (!are_one && paths.size() > 1 && is_topology_file(path)) continue;
    if (auto set =
            arguments.format.empty() ? Result<void>() : topology::insist_on_format(path, arguments.format);
        !set)
      refuse_reading("--from: " + set.error().message);
    if (!are_files_of_one && is_more_than_format)
      topology::read_path_by(path, [path, told] { return topology::read_as_told({&path, 1}, told); });
  }
  if (are_files_of_one)
    topology::read_path_by(paths.front(), [paths, told] { return topology::read_as_told(paths, told); });
}

void add_flags(CLI::App& command, const std::shared_ptr<ReadingArguments>& of_command,
               ReadingOptions options) {
  ReadingArguments& arguments = *of_command;
  const auto add = [&](const char* flag, std::string& value, const char* type, const char* help) {
    command.add_option(flag, value, help)->type_name(type)->group(kReadingGroup);
  };
  add("--from", arguments.format, "FORMAT",
      "Its format, such as slurm, lldp or table; default: by its content");
  add("--slurm-topology", arguments.slurm_topology, "NAME",
      "Topology of a topology.yaml, or NAME:RING for one of its rings or tori; default: the cluster's");
  add("--hosts", arguments.hosts, "REGEX",
      "Of a list of cables: servers are the nodes whose names match, and no others");
  add("--exclude", arguments.exclude, "REGEX", "Of a list of cables: nodes whose names match are left out");
  add("--switches", arguments.switches, "REGEX",
      "Of a list of cables: switches are the nodes whose names match, and no others");
  add("--columns", arguments.columns, "LIST",
      "Of a table of cables with a header of its own or none: A_NODE,A_PORT,B_NODE,B_PORT[,RATE], by name or number");
  // Before the command runs, and reads the files.
  command.parse_complete_callback([of_command, options, &command] {
    if (!command.get_subcommands().empty()) {
      // A command below this one has topologies of its own.
      const auto given = given_options(*of_command);
      if (given.empty() && of_command->files.empty()) return;
      const std::string below = command.get_subcommands().front()->get_name();
      refuse_reading(fmt::format("{0} is an option of hips {1}; write it behind {2}, if {2} has it",
                                 given.empty() ? "-t" : given.front().first, command.get_name(), below));
    }
    if (options.rates) of_command->rates = options.rates();
    apply_reading(*of_command, options.topologies ? options.topologies(*of_command) : of_command->files,
                  options.are_one);
  });
  if (!options.has_rate || options.rates) return;
  command
      .add_option(
          "--rate", arguments.rates,
          "Of cables whose rate the file does not tell: leaf=RATE of servers' cables, spine=RATE of those above "
          "leaf switches, core=RATE above spines; may be given for each")
      ->type_name("TIER=RATE")
      ->allow_extra_args(false)
      ->group(kReadingGroup);
}

}  // namespace

bool ReadingArguments::are_given() const {
  return !given_options(*this).empty() || files.size() > 1;
}

std::vector<std::string> ReadingArguments::words() const {
  std::vector<std::string> words;
  for (const std::string& file : files) words.insert(words.end(), {"-t", file});
  for (const auto& [flag, value] : given_options(*this)) words.insert(words.end(), {flag, value});
  return words;
}

std::shared_ptr<ReadingArguments> add_reading_options(CLI::App& command, ReadingOptions options) {
  auto arguments = std::make_shared<ReadingArguments>();
  add_flags(command, arguments, std::move(options));
  return arguments;
}

std::shared_ptr<ReadingArguments> add_topology_option(CLI::App& command, std::string& spec, std::string help,
                                                      std::string flags, ReadingOptions options) {
  auto arguments = std::make_shared<ReadingArguments>();
  // Without its flag CLI11 takes several only if it may take more after one flag, too.
  const bool is_positional = flags.ends_with("TOPOLOGY");
  command.add_option(std::move(flags), arguments->files, std::move(help))
      ->type_name("SPEC")
      ->allow_extra_args(is_positional);
  options.topologies = [&spec, topologies = std::move(options.topologies)](ReadingArguments& given) {
    if (!given.files.empty()) spec = given.files.front();
    return topologies ? topologies(given) : given.files;
  };
  add_flags(command, arguments, std::move(options));
  return arguments;
}

}  // namespace hips::cli
