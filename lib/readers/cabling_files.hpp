#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"
#include "topology/cabling/cabling.hpp"
#include "topology/cabling/cabling_list.hpp"
#include "topology/cabling/name_selection.hpp"
#include "topology/formats/topology_file.hpp"

namespace hips::topology {

/// How to read a list of cables, beyond what its text tells.
struct CablingOptions {
  NameSelection selection{};             ///< which nodes to keep
  std::optional<ListColumns> columns{};  ///< of a table whose header is not known
  std::vector<double> tier_rates{};      ///< Cabling::tier_rates
  std::string format{};                  ///< the only one that is accepted; empty: by the content
};

/// A format of lists of cables.
struct CablingFormat {
  std::string_view name;  ///< "ibnetdiscover"
  bool (*recognises)(std::string_view text);
  Result<Cabling> (*read)(std::string_view name, std::string_view text);
};

/// All of them, in the order in which they are tried.
std::span<const CablingFormat> cabling_formats();

/// Recognises the topology of a cabling that was read.
Result<TopologyFile> file_of_cables(std::string_view name, Result<Cabling> cabling,
                                    const CablingOptions& options);

/// Reads a list of cables and recognises the topology.
///
/// Cost     those of the format's reader and of topology_of().
/// Errors   kInvalidArgument: no known format; what the reader, the selection or the recognition rejects.
Result<TopologyFile> read_cabling(std::string_view name, std::string_view text,
                                  const CablingOptions& options = {});

/// The same of a folder, or of several files, with what lldpctl prints on each host. Empty files are ignored with a note.
Result<TopologyFile> read_cabling_folder(std::string_view name, std::span<const NamedText> texts,
                                         const CablingOptions& options = {});

/// read_cabling() or read_cabling_folder() of a file or a folder.
Result<TopologyFile> read_cabling_path(const std::string& path, const CablingOptions& options);

}  // namespace hips::topology
