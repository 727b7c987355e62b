#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace hips::cli {

/// What the options of a command tell about the files of its topologies: --from, --slurm-topology, --hosts, --exclude, --switches,
/// --columns and --rate. They apply once the command line is parsed: load_topology() and parse_topology() then read the files so.
struct ReadingArguments {
  std::vector<std::string> files{};  ///< of -t; of one topology, unless the command compares several
  std::string format{}, slurm_topology{}, hosts{}, exclude{}, switches{}, columns{};
  std::string format_option{};       ///< the option of the command that told the format; empty: --from
  std::vector<std::string> rates{};  ///< "spine=400Gb"

  /// Is one of the options given, or several files of one topology?
  [[nodiscard]] bool are_given() const;
  /// The options as words, for a command line that does the same.
  [[nodiscard]] std::vector<std::string> words() const;
};

/// How commands differ.
struct ReadingOptions {
  /// The specs whose files the options are for; none: HIPS_TOPO. By default `files`. May change the arguments.
  std::function<std::vector<std::string>(ReadingArguments&)> topologies{};
  bool are_one = true;  ///< several files are those of one topology
  /// Values of a --rate that the command has itself; by default the option is added.
  std::function<std::vector<std::string>()> rates{};
  bool has_rate = true;  ///< false: the command has a --rate that means something else
};

/// Adds the options, without -t.
std::shared_ptr<ReadingArguments> add_reading_options(CLI::App& command, ReadingOptions options = {});

/// Adds -t, which sets `spec`, and the options. Several -t are the files of one topology. `flags` may be "-t,--topology,TOPOLOGY".
std::shared_ptr<ReadingArguments> add_topology_option(CLI::App& command, std::string& spec, std::string help,
                                                      std::string flags = "-t,--topology",
                                                      ReadingOptions options = {});

}  // namespace hips::cli
