#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/log.hpp"
#include "lib/base/result.hpp"

namespace hips {

/// Names and values, as in environ.
using Environment = std::vector<std::pair<std::string, std::string>>;
/// A copy of this process's environment.
Environment process_environment();

/// A variable, its value, and its origin: "environment", or file and line ("/etc/hips.conf:3").
struct Setting {
  std::string name, value, origin;
  friend bool operator==(const Setting&, const Setting&) = default;
};

/// Settings of HIPS_IB_* and HIPS_VERBS_*. Names and values follow NCCL where it has them.
struct RdmaConfig {
  std::string hca;
  std::int32_t gid_index = -1;
  std::int32_t traffic_class = 0, service_level = 0, timeout = 18, retry_count = 7;
  std::int32_t pairs_per_connection = 1;
  std::int32_t max_queue_pairs = 0;  ///< 0: the device's limit
  bool cm = false;
  friend bool operator==(const RdmaConfig&, const RdmaConfig&) = default;
};

/// How reproducible the bits of a result are (HIPS_REPRODUCIBLE). Each level includes the previous ones.
enum class Reproducible : std::uint8_t {
  kOff,  ///< equal on all ranks
  kRun,  ///< equal in every run with the same ranks on the same nodes: no choice depends on timing
  kAny,  ///< equal for every placement of ranks and every transport: reduced in rank order
};
/// "off", "run", "any"
const char* to_string(Reproducible level);

/// When the interposer takes over a communicator of the program.
enum class Adopt : std::uint8_t {
  kAuto,    ///< when its calls are expected to save more than the set-up takes
  kAlways,  ///< at its first collective
};

/// The settings of all HIPS_* variables; config_variables() documents them and their defaults.
struct Config {
  /// `topology` is HIPS_TOPO; if that is unset, "file:" and HIPS_TOPO_FILE.
  std::optional<std::string> topology, algorithm, pattern, select_table;
  std::string topology_file, topology_dump;
  std::optional<std::string> plan_file;
  std::int32_t num_rings = 0, num_leaders = 0;  ///< 0: the algorithm chooses
  std::string transport = "auto";
  std::optional<std::int32_t> rank, size;
  std::string root;
  std::string job_token;
  std::optional<std::int64_t> timeout_ns;
  std::int64_t dead_after_ns = 4'000'000'000;
  log::Filter log;
  std::string trace_dir;
  bool mpi_report = false;
  std::string mpi_report_file;  ///< rank 0 writes it; "" for none
  std::optional<bool> progress_thread;
  Adopt adopt = Adopt::kAuto;
  std::optional<bool> guard;  ///< unset: on, unless a plan is named, or a topology for one node
  std::string guard_table;
  Reproducible reproducible = Reproducible::kOff;
  std::optional<std::int32_t> credits;       ///< unset: by transport
  std::optional<std::size_t> segment_bytes;  ///< unset: by transport
  std::size_t staging_bytes = 8u << 20;
  bool node_direct = true;  ///< ranks of a node read each other's hips_mem_alloc() memory in place
  std::string socket_ifname;
  bool socket_zerocopy = false;
  RdmaConfig rdma;
};

/// Whether the user has named the plan, its algorithm, pattern or number of rings or leaders: how calls are to run.
bool names_how(const Config& config);
/// Whether the user has named a topology or a plan, instead of leaving the choice to HiPS.
bool names_a_plan(const Config& config);

/// An entry of the table of variables, which `hips info env` and the documentation print.
struct ConfigVariable {
  std::string_view name;
  std::string_view values;         ///< "BYTES", "on|off", ...
  std::string_view default_value;  ///< as a user would write it; "" if it is unset by default
  std::string_view doc;            ///< one line
  /// Sets the field from text. Returns "" or a description of valid values. Null: the variable is read
  /// elsewhere, and is listed here so that its name is known.
  std::string (*set)(Config&, std::string_view text);
};
std::span<const ConfigVariable> config_variables();

/// The result of reading an environment. The field of an invalid variable keeps its default, so that the rank
/// can still connect to its peers and report the error to them.
struct LoadedConfig {
  Config config;
  Status status;  ///< of the first invalid variable: its name, its value and the valid values
  std::vector<std::string> warnings;  ///< unknown HIPS_* names, each with the nearest known name
};

/// Reads an environment. Pure.
LoadedConfig load_config(const Environment& environment);
/// Reads settings of any origin; errors and warnings name the file if a setting comes from one.
LoadedConfig load_config(std::span<const Setting> settings);

/// Reads this process's files (lib/base/config/config_file.hpp) and environment, configures the log, and
/// reports unknown names once per process.
LoadedConfig load_process_config();

/// Parses a whole number with an optional K, M or G (powers of 1024): "64", "4K", "2G"; "1.5M" is invalid.
std::optional<std::uint64_t> parse_bytes(std::string_view text);
/// Parses on, off, 1 or 0; everything else is invalid.
std::optional<bool> parse_bool(std::string_view text);
/// Parses a positive time and returns ns: "500ms", "90s", "2m", "1.5" (seconds).
std::optional<std::int64_t> parse_duration_ns(std::string_view text);

}  // namespace hips
