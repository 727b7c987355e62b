#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hips/topology.hpp>

#include "lib/base/result.hpp"

namespace hips::topology {

/// A topology with what only its site knows: names of hosts and devices.
struct TopologyFile {
  Topology topology;
  std::vector<std::string> server_names;  ///< by server; empty where the file names none
  std::vector<std::string> devices;       ///< by rail, "mlx5_0" or ""; empty where the file names none
  /// Devices of the servers whose NICs have other names.
  std::map<std::int64_t, std::vector<std::string>> other_devices;

  /// The name of a server for people: its host, else its address.
  [[nodiscard]] std::string server_name(std::int64_t server) const;
  /// "" where it has none.
  [[nodiscard]] std::string device(std::int64_t server, Rail rail) const;
  friend bool operator==(const TopologyFile&, const TopologyFile&) = default;
};

/// The version of the format that is written; others are refused.
inline constexpr std::int64_t kTopologyFileVersion = 1;

/// Reads a topology file (docs/topologies.md, docs/topology.schema.json).
///
/// What the file says about switches, cables, levels and relaying is compared with the shape that it names,
/// so that a cable in the wrong port is an error and not a slow run. A topology whose rates are those of one
/// spec gets that spec; any other is "file:`name`#DIGEST", the digest being that of the text.
///
/// Cost     the text, at most kMostYamlBytes, and the servers it names.
/// Errors   kInvalidArgument: `name`, line, key, the value seen and what would be right.
Result<TopologyFile> parse_topology_file(std::string_view name, std::string_view text);

/// The same of a file. Errors kInvalidArgument, too: it cannot be read, or is too large.
Result<TopologyFile> read_topology_file(const std::string& path);

/// Writes what parse_topology_file() reads. With `all_cables` every cable has a line, not only those that are
/// not as their level says.
///
/// Errors   kUnsupported: more cables than a file may list.
Result<std::string> topology_file_text(const TopologyFile& file, bool all_cables);

/// The spec of the family alone, without rates and ranks: the `shape` of a file.
std::string topology_shape(const Topology& topology);

/// Are all levels of one rate, with nothing else that a spec cannot say?
bool has_plain_spec(const Topology& topology);

/// Writes a topology to a file, by replace_file().
///
/// Errors   kSystem: it cannot be written. Those of topology_file_text().
Result<void> write_topology_file(const std::string& path, const TopologyFile& file);

/// A spec that names a file.
struct FileSpec {
  std::string path;
  std::optional<std::string> digest;            ///< what the file must have
  std::optional<std::string> ranks_per_server;  ///< behind "/"
  std::string text;                             ///< all of it
};
/// Nothing where the spec names no file: it neither begins with "file:" nor has a path that ends in .yaml or
/// .yml.
std::optional<FileSpec> file_spec(std::string_view spec);

/// Errors   those of read_topology_file(), and kInvalidArgument: the digest or the ranks per server do not
/// fit.
Result<TopologyFile> read_file_spec(const FileSpec& spec);

/// parse(), but with the names that a file has.
Result<TopologyFile> load_topology(std::string_view spec);

/// All of a file that is no larger than `most` bytes.
Result<std::string> read_text_file(const std::string& path, std::size_t most);

}  // namespace hips::topology
