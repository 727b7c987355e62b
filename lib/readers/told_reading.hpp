#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/base/result.hpp"
#include "topology/cabling/cabling_list.hpp"
#include "topology/cabling/name_selection.hpp"
#include "topology/formats/topology_file.hpp"

namespace hips::topology {

/// What a person tells about a file, beyond its text.
struct ToldReading {
  std::string format{};                  ///< the only one that is accepted; empty: by the content
  std::string slurm_topology{};          ///< one of a file of Slurm: NAME, NAME:RING
  NameSelection selection{};             ///< which nodes of a list of cables to keep
  std::optional<ListColumns> columns{};  ///< of a table whose header is not known
  std::vector<double> tier_rates{};      ///< Cabling::tier_rates

  [[nodiscard]] bool selects_cables() const {
    return columns || !selection.hosts.empty() || !selection.exclude.empty() || !selection.switches.empty();
  }
};

/// Reads a file or a folder as it is told, or several files with what lldpctl prints on each host.
///
/// Errors   kInvalidArgument: several files of another format, named by the first of them; what was told does not fit the file;
///          those of the readers.
Result<TopologyFile> read_as_told(std::span<const std::string> paths, const ToldReading& told);

}  // namespace hips::topology
