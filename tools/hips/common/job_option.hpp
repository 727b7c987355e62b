#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "topology/formats/topology_file.hpp"

namespace hips::cli {

/// --hostfile and --nodelist: the servers of a topology with node names that a job uses.
struct JobArguments {
  std::string hostfile, nodelist;
  /// These tell an empty list, which is an error, from no list, which means all servers.
  const CLI::Option *hostfile_option = nullptr, *nodelist_option = nullptr;
};

void add_job_options(CLI::App& command, JobArguments& arguments);

/// The part of a topology that the job uses, with the notes and cables of all of it, and a note if servers outside the job have to
/// relay; all of it if neither option is given. `spec` may be a topology file.
///
/// Errors   (thrown) kInvalidArgument: an option is given and empty. Those of topology::load_topology() and
///          restrict_to().
topology::TopologyFile load_for_job(const std::string& spec, const JobArguments& arguments);

/// The same for commands that show no notes: prints to stderr which servers outside the job have to relay.
topology::TopologyFile load_for_plan(const std::string& spec, const JobArguments& arguments);

}  // namespace hips::cli
