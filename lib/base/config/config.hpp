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

/// A variable, its value, and who says it: "environment", or file and line ("/etc/hips.conf:3").
struct Setting {
  std::string name, value, origin;
  friend bool operator==(const Setting&, const Setting&) = default;
};

/// What HIPS_IB_* and HIPS_VERBS_* say; names and values are those of NCCL where it has them.
struct RdmaConfig {
  std::string hca;
  std::int32_t gid_index = -1;
  std::int32_t traffic_class = 0, service_level = 0, timeout = 18, retry_count = 7;
  std::int32_t pairs_per_connection = 1;
  std::int32_t max_queue_pairs = 0;  ///< 0: what the device allows
  bool cm = false;
  friend bool operator==(const RdmaConfig&, const RdmaConfig&) = default;
};

/// What is promised about the bits of a result (HIPS_REPRODUCIBLE), each level with those before it.
enum class Reproducible : std::uint8_t {
  kOff,  ///< equal on all ranks
  kRun,  ///< equal in every run with the same ranks on the same hosts: no choice depends on timing
  kAny,  ///< equal wherever the ranks are and whatever carries the data: folded by rank
};
/// "off", "run", "any"
const char* to_string(Reproducible level);

/// Everything that HIPS_* variables say. What each means, and its default, is in config_variables().
struct Config {
  /// `topology` is HIPS_TOPO, else "file:" and HIPS_TOPO_FILE.
  std::optional<std::string> topology, algorithm, pattern, select_table;
  std::string topology_file, topology_dump;
  std::optional<std::string> plan_file;
  std::int32_t num_rings = 0, num_leaders = 0;  ///< 0: the algorithm's own choice
  std::string transport = "auto";
  std::optional<std::int32_t> rank, size;
  std::string root;
  std::string job_token;
  std::optional<std::int64_t> timeout_ns;
  std::int64_t dead_after_ns = 4'000'000'000;
  log::Filter log;
  std::string trace_dir;
  bool mpi_report = false;
  std::optional<bool> progress_thread;
  std::optional<bool> guard;  ///< unset: on, but not where a topology or a plan is named
  std::string guard_table;
  Reproducible reproducible = Reproducible::kOff;
  std::optional<std::int32_t> credits;       ///< none: by transport
  std::optional<std::size_t> segment_bytes;  ///< unset: what suits the transports
  std::size_t staging_bytes = 8u << 20;
  bool node_direct = true;  ///< ranks of a host read one another's memory of hips_mem_alloc() where it lies
  std::string socket_ifname;
  bool socket_zerocopy = false;
  RdmaConfig rdma;
};

/// Somebody named the wiring or the plan, instead of leaving both to HiPS.
bool names_a_plan(const Config& config);

/// A line of the table of variables: what `hips info env` and the README print.
struct ConfigVariable {
  std::string_view name;
  std::string_view values;         ///< "BYTES", "on|off", ...
  std::string_view default_value;  ///< as a user would write it; "" where unset is the default
  std::string_view doc;            ///< one line
  /// Sets the field from text; gives "" or what would be right. Null: read elsewhere, listed here so that it
  /// is a known name.
  std::string (*set)(Config&, std::string_view text);
};
std::span<const ConfigVariable> config_variables();

/// What an environment says. Where a variable is wrong its field keeps the default, so that a rank can still
/// meet its peers and tell them.
struct LoadedConfig {
  Config config;
  Status status;                      ///< of the first wrong variable: name, value, and what is right
  std::vector<std::string> warnings;  ///< unknown HIPS_* names, each with the nearest known one
};

/// Reads an environment. Pure.
LoadedConfig load_config(const Environment& environment);
/// The same of settings from anywhere; errors and warnings name the files among their origins.
LoadedConfig load_config(std::span<const Setting> settings);

/// Reads this process's files (lib/base/config/config_file.hpp) and environment, sets up the log, and reports
/// unknown names once per process.
LoadedConfig load_process_config();

/// "64", "4K", "1.5M" is wrong, "2G" is right: whole numbers with an optional K, M or G (powers of 1024).
std::optional<std::uint64_t> parse_bytes(std::string_view text);
/// on, off, 1, 0; nothing else.
std::optional<bool> parse_bool(std::string_view text);
/// "500ms", "90s", "2m", "1.5" (seconds), in ns; positive.
std::optional<std::int64_t> parse_duration_ns(std::string_view text);

}  // namespace hips
