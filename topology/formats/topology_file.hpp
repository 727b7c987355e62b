#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hips/topology.hpp>

#include "lib/base/result.hpp"
#include "topology/formats/told_wiring.hpp"

namespace hips::topology {

struct Cabling;

/// The cables of a topology as its file lists them, with names and ports, for people; none of topology files. They are no part
/// of the topology: all are equal.
struct ListedCables {
  std::shared_ptr<const Cabling> value;
  friend bool operator==(const ListedCables&, const ListedCables&) { return true; }
};

/// A topology with the names of its hosts and devices.
struct TopologyFile {
  Topology topology;
  std::vector<std::string> server_names;  ///< by server; empty if the file names none
  std::vector<std::string> devices;       ///< by rail, "mlx5_0" or ""; empty if the file names none
  /// Devices of the servers whose NICs have other names.
  std::map<std::int64_t, std::vector<std::string>> other_devices;
  /// What the reader of a cluster's description ignored or assumed, one line each; none of a topology file that was not made of one.
  std::optional<std::vector<std::string>> notes{};
  ListedCables cabling{};
  ToldWiring told{};

  /// The name of a server for messages: its host name, otherwise its address.
  [[nodiscard]] std::string server_name(std::int64_t server) const;
  /// "" if it has none.
  [[nodiscard]] std::string device(std::int64_t server, Rail rail) const;
  friend bool operator==(const TopologyFile&, const TopologyFile&) = default;
};

/// The version of the format that is written; others are rejected.
inline constexpr std::int64_t kTopologyFileVersion = 1;

/// Reads a topology file (docs/topologies.md, docs/topology.schema.json).
///
/// The switches, cables, levels and relaying in the file are compared with its shape, so a cable in the wrong
/// port is an error and not a slow run. If a spec describes the topology with its rates, the topology gets
/// this spec, otherwise "file:`name`#DIGEST" with the digest of the text.
///
/// Cost     linear in the text, at most kMostYamlBytes, and in the servers that it names.
/// Errors   kInvalidArgument: `name`, line, key, the value seen and what would be right.
Result<TopologyFile> parse_topology_file(std::string_view name, std::string_view text);

/// The number that tells different files apart in specs; it does not resist attacks.
std::uint64_t text_digest(std::string_view text);

/// A file of a folder.
struct NamedText {
  std::string name{};
  std::string text{};
};

/// A format of topologies other than that of topology files.
struct TopologyFormat {
  std::string_view name;  ///< "slurm", for --from
  bool (*recognises)(std::string_view text);
  std::function<Result<TopologyFile>(std::string_view name, std::string_view text)> read;
  /// Reads all files of a folder as one; null: the format has no folders.
  Result<TopologyFile> (*read_folder)(std::string_view name, std::span<const NamedText> texts) = nullptr;
};

/// Adds a format that read_topology_file() reads from now on. The library preloaded into MPI programs adds none: `hips run`
/// converts such files before it starts the program.
///
/// Threads  call it before topology files are read.
void add_topology_format(const TopologyFormat& format);

/// Insists that the file or folder `path` is of one format: read_topology_file() then does not go by the content, and the reader
/// of the format says what is wrong with it. "hips" is the format of topology files.
///
/// Threads  as add_topology_format().
/// Errors   kInvalidArgument: no format of this name; lists those that were added.
Result<void> insist_on_format(const std::string& path, std::string_view name);

/// Lets `read` give the topology of the file or folder `path` from now on, whatever the file is: how it is read was told.
///
/// Threads  as add_topology_format().
void read_path_by(const std::string& path, std::function<Result<TopologyFile>()> read);

/// Is the file `path` with this text read in a format that was added, or in a way that was told?
bool has_added_format(const std::string& path, std::string_view text);

/// Reads a file, of a format that was added or else as parse_topology_file() does, or a folder, of a format that has folders.
/// Errors kInvalidArgument, too: the file cannot be read, or is too large.
Result<TopologyFile> read_topology_file(const std::string& path);

/// Does the text of a topology file have lists of server names (server_names.hpp)?
bool has_name_lists(std::string_view text);

/// Writes the text that parse_topology_file() reads. With `all_cables` every cable has a line, not only those
/// that differ from their level.
///
/// Errors   kUnsupported: more cables than a file can list.
Result<std::string> topology_file_text(const TopologyFile& file, bool all_cables);

/// Writes a topology file without names, for programs that read no lists of names. It keeps the spec of the
/// original, by which selection tables and other ranks identify it.
std::string nameless_topology_text(const TopologyFile& file);

/// The spec of a topology without rates and ranks: the `shape` of a file.
std::string topology_shape(const Topology& topology);

/// Can a spec describe the topology: one rate for all levels, no overrides, default latencies?
bool has_plain_spec(const Topology& topology);

/// The spec of a topology that was made of the file `name`: its present one, which tells no rates, with "@RATE"; or where no spec
/// describes it, "file:NAME#DIGEST".
///
/// Errors   those of topology_file_text().
Result<std::string> spec_with_rates(std::string_view name, const TopologyFile& file);

/// Writes a topology to a file, by replace_file().
///
/// Errors   kSystem: it cannot be written. Those of topology_file_text().
Result<void> write_topology_file(const std::string& path, const TopologyFile& file);

/// A spec that names a file.
struct FileSpec {
  std::string path;
  std::optional<std::string> digest;            ///< that the file must have
  std::optional<std::string> ranks_per_server;  ///< after "/"
  std::string text;                             ///< the whole spec
};
/// None if the spec names no file. It names one if it begins with "file:" or has a path that ends in .yaml or .yml; or if it
/// has no ":" and either has both a "/" and a "." or is the name of a file that exists.
std::optional<FileSpec> file_spec(std::string_view spec);

/// The path of the file that a spec names. Asks the file system whether a "/RANKS" at the end is part of the
/// path.
std::string path_of(const FileSpec& spec);

/// Errors   those of read_topology_file(). kInvalidArgument: the digest or the ranks per server do not match.
Result<TopologyFile> read_file_spec(const FileSpec& spec);

/// Like parse(), but with the names of a topology file.
Result<TopologyFile> load_topology(std::string_view spec);

/// Reads a file of at most `most` bytes.
Result<std::string> read_text_file(const std::string& path, std::size_t most);

/// Reads the files of a folder in the order of their names, hidden ones excepted, of at most `most` bytes together.
///
/// Errors   kInvalidArgument: a file cannot be read, there is none, or they are too large.
Result<std::vector<NamedText>> read_text_folder(const std::string& path, std::size_t most);

}  // namespace hips::topology
