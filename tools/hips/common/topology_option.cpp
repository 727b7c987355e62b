#include "tools/hips/common/topology_option.hpp"

#include <memory>
#include <utility>

#include <fmt/format.h>

#include <hips/status.hpp>

#include "tools/hips/common/settings.hpp"
#include "topology/formats/topology_file.hpp"

namespace hips::cli {

std::string topology_or_environment(const std::string& option) {
  return option.empty() ? settings().topology.value_or("") : option;
}

std::string required_topology(std::string_view command, const std::string& option) {
  std::string topology = topology_or_environment(option);
  if (!topology.empty()) return topology;
  throw Error(Status::error(
      Code::kInvalidArgument,
      fmt::format("{}: no topology; give -t SPEC (such as bcube:3,1) or set HIPS_TOPO", command)));
}

void add_from_option(CLI::App& command, std::function<std::vector<std::string>()> topologies) {
  const auto format = std::make_shared<std::string>();
  command
      .add_option(
          "--from", *format,
          "Format that the file of -t must have, such as slurm, lldp or table; default: by its content")
      ->type_name("FORMAT");
  // Before the command runs, and reads the file.
  command.parse_complete_callback([format, topologies = std::move(topologies)] {
    if (format->empty()) return;
    std::vector<std::string> specs = topologies();
    std::erase(specs, "");
    if (specs.empty()) specs.push_back(required_topology("--from", ""));
    for (const std::string& spec : specs) {
      const auto file = topology::file_spec(spec);
      if (!file)
        throw Error(
            Status::error(Code::kInvalidArgument,
                          fmt::format("--from {}: \"{}\" is no file; leave --from out", *format, spec)));
      if (auto set = topology::insist_on_format(topology::path_of(*file), *format); !set)
        throw Error(Status::error(Code::kInvalidArgument, "--from: " + set.error().message));
    }
  });
}

}  // namespace hips::cli
