#include "lib/base/config/config.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "lib/base/config/config_file.hpp"
#include "lib/base/edit_distance.hpp"

namespace hips {
namespace {

template <typename T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

/// Sets a text field, which must not be empty.
template <auto member>
std::string set_text(Config& config, std::string_view text) {
  if (text.empty()) return "a value, or leave it unset";
  config.*member = std::string(text);
  return {};
}

std::string set_rank(Config& config, std::string_view text) {
  const auto value = parse_number<std::int32_t>(text);
  if (!value || *value < 0) return "a number from 0 to HIPS_SIZE - 1";
  config.rank = *value;
  return {};
}

std::string set_size(Config& config, std::string_view text) {
  const auto value = parse_number<std::int32_t>(text);
  if (!value || *value < 1) return "the number of ranks, 1 or more";
  config.size = *value;
  return {};
}

std::string set_timeout(Config& config, std::string_view text) {
  const auto value = parse_duration_ns(text);
  if (!value) return "a time above zero: 30, 30s, 500ms or 2m";
  config.timeout_ns = *value;
  return {};
}

std::string set_dead_after(Config& config, std::string_view text) {
  const auto value = parse_duration_ns(text);
  if (!value || *value < 2'000'000'000 || *value > 3'600'000'000'000)
    return "a time from 2s to 60m, such as 10s";
  config.dead_after_ns = *value;
  return {};
}

std::string set_log(Config& config, std::string_view text) {
  auto filter = log::parse_filter(text);
  if (!filter) return log::filter_syntax();
  config.log = *filter;
  return {};
}

std::string set_mpi_report(Config& config, std::string_view text) {
  if (text.ends_with(".json")) {
    config.mpi_report = true;
    config.mpi_report_file = text;
    return {};
  }
  const auto value = parse_bool(text);
  if (!value) return "on, off, 1 or 0, or a file that ends with .json";
  config.mpi_report = *value;
  return {};
}

std::string set_node_direct(Config& config, std::string_view text) {
  const auto value = parse_bool(text);
  if (!value) return "on, off, 1 or 0";
  config.node_direct = *value;
  return {};
}

std::string set_guard(Config& config, std::string_view text) {
  config.guard = parse_bool(text);
  return config.guard ? "" : "on, off, 1 or 0";
}

std::string set_adopt(Config& config, std::string_view text) {
  if (text != "auto" && text != "always") return "auto or always";
  config.adopt = text == "auto" ? Adopt::kAuto : Adopt::kAlways;
  return {};
}

std::string set_reproducible(Config& config, std::string_view text) {
  for (const Reproducible level : {Reproducible::kOff, Reproducible::kRun, Reproducible::kAny}) {
    if (text != to_string(level)) continue;
    config.reproducible = level;
    return {};
  }
  return "off, run or any";
}

template <auto member>
std::string set_count(Config& config, std::string_view text) {
  const auto value = parse_number<std::int32_t>(text);
  if (!value || *value < 1) return "a number of 1 or more";
  config.*member = *value;
  return {};
}

std::string set_credits(Config& config, std::string_view text) {
  const auto value = parse_number<std::int32_t>(text);
  if (!value || *value < 1 || *value > 15) return "a number from 1 to 15";
  config.credits = *value;
  return {};
}

std::string set_segment_bytes(Config& config, std::string_view text) {
  const auto value = parse_bytes(text);
  if (!value || *value < 64 || *value > (1u << 30)) return "a size from 64 to 1G, such as 128K";
  config.segment_bytes = static_cast<std::size_t>(*value);
  return {};
}

std::string set_staging_bytes(Config& config, std::string_view text) {
  const auto value = parse_bytes(text);
  if (!value || *value < 4096) return "a size of 4K or more, such as 8M";
  config.staging_bytes = static_cast<std::size_t>(*value);
  return {};
}

std::string set_hca(Config& config, std::string_view text) {
  if (text.empty()) return "names of devices such as mlx5_0:1,mlx5_1:1, or leave it unset";
  config.rdma.hca = std::string(text);
  return {};
}

std::string set_socket_zerocopy(Config& config, std::string_view text) {
  const auto value = parse_bool(text);
  if (!value) return "on, off, 1 or 0";
  config.socket_zerocopy = *value;
  return {};
}

std::string set_socket_ifname(Config& config, std::string_view text) {
  if (text.empty()) return "names of network interfaces such as eth0,eth1, or leave it unset";
  config.socket_ifname = std::string(text);
  return {};
}

template <auto member, std::int32_t least, std::int32_t most>
std::string set_rdma(Config& config, std::string_view text) {
  const auto value = parse_number<std::int32_t>(text);
  if (!value || *value < least || *value > most) return fmt::format("a number from {} to {}", least, most);
  config.rdma.*member = *value;
  return {};
}

std::string set_progress_thread(Config& config, std::string_view text) {
  const auto value = parse_bool(text);
  if (!value) return "on, off, 1 or 0";
  config.progress_thread = *value;
  return {};
}

std::string set_cm(Config& config, std::string_view text) {
  const auto value = parse_bool(text);
  if (!value) return "on, off, 1 or 0";
  config.rdma.cm = *value;
  return {};
}

constexpr std::array kVariables = {
    ConfigVariable{"HIPS_TOPO", "SPEC", "what the NICs show",
                   "topology of the cluster: bcube:n,k | torus:AxB | mesh:AxB | fattree:k | leafspine:l,s | "
                   "rail:servers,K | switch:n, each with an optional /m for m ranks per server; or FILE.yaml",
                   set_text<&Config::topology>},
    ConfigVariable{"HIPS_TOPO_FILE", "FILE", "",
                   "topology file (docs/topologies.md), used if HIPS_TOPO is not set",
                   set_text<&Config::topology_file>},
    ConfigVariable{"HIPS_TOPO_DUMP", "FILE", "",
                   "rank 0 writes the topology of its first communicator to this file",
                   set_text<&Config::topology_dump>},
    ConfigVariable{"HIPS_ALGORITHM", "NAME", "by size",
                   "algorithm for all sizes; `hips plan --list` prints the names, `hips info select` the "
                   "choice by size",
                   set_text<&Config::algorithm>},
    ConfigVariable{"HIPS_PATTERN", "P[,P...]", "by size on switches, ring on cables",
                   "mesh, ring or ps:LEADERS: one for all levels, or one for each level",
                   set_text<&Config::pattern>},
    ConfigVariable{"HIPS_SELECT_TABLE", "FILE", "",
                   "table that chooses a plan by topology and size, in place of the cost model; "
                   "`hips-allreduce-perf --tune FILE` measures one",
                   set_text<&Config::select_table>},
    ConfigVariable{"HIPS_PLAN_FILE", "FILE", "",
                   "stored plan for all sizes (from hips plan --all --json, or MSCCL's XML); it is checked "
                   "before it runs",
                   set_text<&Config::plan_file>},
    ConfigVariable{"HIPS_RINGS", "NUMBER", "as many as exist",
                   "flat-ring: number of rings, each over different NICs", set_count<&Config::num_rings>},
    ConfigVariable{"HIPS_LEADERS", "NUMBER", "1", "flat-ps: number of leader servers",
                   set_count<&Config::num_leaders>},
    ConfigVariable{"HIPS_TRANSPORT", "NAME", "auto",
                   "transport of the data: shm, verbs, tcp or auto; auto is shm inside a node, and between "
                   "nodes verbs if both have RDMA, else tcp",
                   set_text<&Config::transport>},
    ConfigVariable{"HIPS_RANK", "NUMBER", "", "rank of this process, without a launcher that sets it",
                   set_rank},
    ConfigVariable{"HIPS_SIZE", "NUMBER", "", "number of ranks, without a launcher that sets it", set_size},
    ConfigVariable{"HIPS_ROOT", "HOST:PORT", "",
                   "address at which rank 0 listens while the ranks connect to each other",
                   set_text<&Config::root>},
    ConfigVariable{"HIPS_JOB_TOKEN", "TEXT", "",
                   "name or secret of the job; rank 0 rejects a process that has another one",
                   set_text<&Config::job_token>},
    ConfigVariable{
        "HIPS_TIMEOUT", "TIME", "none",
        "longest time that a call may wait (30, 500ms, 2m); also limits the rendezvous (60 s at most)",
        set_timeout},
    ConfigVariable{"HIPS_DEAD_AFTER", "TIME", "4s",
                   "a node that does not answer for this long is considered dead", set_dead_after},
    ConfigVariable{"HIPS_LOG", "LEVEL[,SUBSYSTEM:LEVEL...]", "warn",
                   "log level on stderr, for all and for single subsystems: info,plan:debug", set_log},
    ConfigVariable{"HIPS_TRACE", "DIR", "", "each rank writes a Chrome trace into this folder",
                   set_text<&Config::trace_dir>},
    ConfigVariable{"HIPS_PROGRESS_THREAD", "on|off", "off; on in MPICH programs",
                   "a thread makes progress on non-blocking calls while the program computes; reserve a core "
                   "for it",
                   set_progress_thread},
    ConfigVariable{
        "HIPS_MPI_REPORT", "on|off|FILE.json", "off",
        "the interposer prints how long the program was in collectives, what HiPS saved, which calls it executed, "
        "which it delegated to native MPI, and why; with a file it writes them there, too",
        set_mpi_report},
    ConfigVariable{
        "HIPS_ADOPT", "auto|always", "auto",
        "when the interposer takes over a communicator: once its calls would have saved more than the set-up "
        "takes, or at its first collective",
        set_adopt},
    ConfigVariable{"HIPS_GUARD", "on|off", "on; off if a plan is named, or a topology for one node",
                   "the interposer times native MPI and HiPS for each size and keeps the faster one",
                   set_guard},
    ConfigVariable{"HIPS_GUARD_TABLE", "FILE", "",
                   "file of the guard's tuning decisions: read at the start, written by rank 0 at the end",
                   set_text<&Config::guard_table>},
    ConfigVariable{"HIPS_REPRODUCIBLE", "off|run|any", "off",
                   "bitwise equal results on all ranks (off), also in every run (run), also for every "
                   "placement of the ranks (any)",
                   set_reproducible},
    ConfigVariable{"HIPS_CREDITS", "NUMBER", "4, tcp 8", "receive slots for each peer and lane", set_credits},
    ConfigVariable{"HIPS_SEGMENT_BYTES", "BYTES", "128K, tcp 130816",
                   "largest segment: the unit that is pipelined through the stages", set_segment_bytes},
    ConfigVariable{"HIPS_STAGING_BYTES", "BYTES", "8M",
                   "limit of the staging memory for arriving data, for each communicator", set_staging_bytes},
    ConfigVariable{
        "HIPS_NODE_DIRECT", "on|off", "on",
        "ranks of a node read each other's memory of hips_mem_alloc in place; off: through staging",
        set_node_direct},
    ConfigVariable{
        "HIPS_SOCKET_IFNAME", "[^|=]IF,...", "all but loopback",
        "tcp: network interfaces, one for each rail in order: name prefixes; = for exact names, ^ to exclude",
        set_socket_ifname},
    ConfigVariable{"HIPS_SOCKET_ZEROCOPY", "on|off", "off",
                   "tcp: send without copying in the kernel (MSG_ZEROCOPY); measure whether your NICs gain",
                   set_socket_zerocopy},
    ConfigVariable{
        "HIPS_IB_HCA", "[^|=]DEV[:PORT],...", "all active ports",
        "verbs: RDMA ports, one for each rail in order: name prefixes; = for exact names, ^ to exclude",
        set_hca},
    ConfigVariable{"HIPS_IB_GID_INDEX", "NUMBER", "-1",
                   "verbs: GID index of the ports; -1: RoCE v2 over IPv4 if there is one",
                   set_rdma<&RdmaConfig::gid_index, -1, 255>},
    ConfigVariable{"HIPS_IB_TC", "NUMBER", "0",
                   "verbs: traffic class: DSCP times 4, to match PFC and ECN of the switches",
                   set_rdma<&RdmaConfig::traffic_class, 0, 255>},
    ConfigVariable{"HIPS_IB_SL", "NUMBER", "0", "verbs: service level",
                   set_rdma<&RdmaConfig::service_level, 0, 15>},
    ConfigVariable{"HIPS_IB_TIMEOUT", "NUMBER", "18",
                   "verbs: an unacknowledged packet is sent again after 4.096 us times 2 to this power",
                   set_rdma<&RdmaConfig::timeout, 1, 31>},
    ConfigVariable{"HIPS_IB_RETRY_CNT", "NUMBER", "7",
                   "verbs: number of retransmissions before the peer counts as lost",
                   set_rdma<&RdmaConfig::retry_count, 0, 7>},
    ConfigVariable{
        "HIPS_IB_QPS_PER_CONNECTION", "NUMBER", "1",
        "verbs: queue pairs for each peer; segments are striped over them; use 4 with ECMP in the path",
        set_rdma<&RdmaConfig::pairs_per_connection, 1, 8>},
    ConfigVariable{"HIPS_VERBS_CM", "on|off", "off",
                   "verbs: connect queue pairs through librdmacm; iWARP always does", set_cm},
    ConfigVariable{"HIPS_VERBS_MAX_QP", "NUMBER", "0",
                   "verbs: limit of the queue pairs of a port; 0: the limit of the device",
                   set_rdma<&RdmaConfig::max_queue_pairs, 0, 1 << 24>},
    ConfigVariable{"HIPS_SEED", "NUMBER", "", "tests: seed of random tests", nullptr},
    ConfigVariable{"HIPS_TOOL", "PATH", "", "tests: path of the hips program", nullptr},
    ConfigVariable{"HIPS_GOLDEN_UPDATE", "1", "", "tests: write the golden files anew", nullptr},
    ConfigVariable{"HIPS_TEST_FULL", "1", "", "tests: run all trials", nullptr},
    ConfigVariable{"HIPS_TEST_SAMPLE", "1", "", "tests: run a sample of the arithmetic tests", nullptr},
};

std::string_view nearest(std::string_view name) {
  return std::min_element(kVariables.begin(), kVariables.end(),
                          [&](const ConfigVariable& a, const ConfigVariable& b) {
                            return edit_distance(name, a.name) < edit_distance(name, b.name);
                          })
      ->name;
}

}  // namespace

const char* to_string(Reproducible level) {
  switch (level) {
    case Reproducible::kOff:
      return "off";
    case Reproducible::kRun:
      return "run";
    case Reproducible::kAny:
      return "any";
  }
  return "off";
}

bool names_how(const Config& config) {
  return config.plan_file || config.algorithm || config.pattern || config.num_rings > 0 ||
         config.num_leaders > 0;
}

bool names_a_plan(const Config& config) {
  return config.topology || names_how(config);
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  int shift = 0;
  if (!text.empty()) {
    switch (text.back()) {
      case 'K':
      case 'k':
        shift = 10;
        break;
      case 'M':
      case 'm':
        shift = 20;
        break;
      case 'G':
      case 'g':
        shift = 30;
        break;
      default:
        break;
    }
  }
  const auto value = parse_number<std::uint64_t>(shift == 0 ? text : text.substr(0, text.size() - 1));
  if (!value || *value > (std::numeric_limits<std::uint64_t>::max() >> shift)) return std::nullopt;
  return *value << shift;
}

std::optional<bool> parse_bool(std::string_view text) {
  if (text == "on" || text == "1") return true;
  if (text == "off" || text == "0") return false;
  return std::nullopt;
}

std::optional<std::int64_t> parse_duration_ns(std::string_view text) {
  double unit_ns = 1e9;
  if (text.ends_with("ms")) {
    unit_ns = 1e6;
    text.remove_suffix(2);
  } else if (text.ends_with("s")) {
    text.remove_suffix(1);
  } else if (text.ends_with("m")) {
    unit_ns = 60e9;
    text.remove_suffix(1);
  }
  const auto value = parse_number<double>(text);
  if (!value || !std::isfinite(*value) || *value <= 0) return std::nullopt;
  const double ns = *value * unit_ns;
  // A century is as good as unlimited, and far from overflow.
  if (ns < 1 || ns > 3.2e18) return std::nullopt;
  return static_cast<std::int64_t>(ns);
}

std::span<const ConfigVariable> config_variables() {
  return kVariables;
}

LoadedConfig load_config(const Environment& environment) {
  std::vector<Setting> settings;
  for (const auto& [name, value] : environment) {
    if (name.starts_with("HIPS_")) settings.push_back({name, value, "environment"});
  }
  return load_config(settings);
}

LoadedConfig load_config(std::span<const Setting> settings) {
  LoadedConfig loaded;
  for (const Setting& setting : settings) {
    const std::string &name = setting.name, &value = setting.value, &origin = setting.origin;
    // The origin is named only for files; it is obvious for an environment variable.
    const std::string where = origin == "environment" ? "" : fmt::format(" ({})", origin);
    const auto variable = std::find_if(kVariables.begin(), kVariables.end(),
                                       [&](const ConfigVariable& v) { return v.name == name; });
    if (variable == kVariables.end()) {
      loaded.warnings.push_back(
          fmt::format("{}{} is not a variable of HiPS; did you mean {}?", name, where, nearest(name)));
      continue;
    }
    if (variable->set == nullptr) continue;
    const std::string right = variable->set(loaded.config, value);
    if (!right.empty() && loaded.status.ok())
      loaded.status = Status::error(Code::kInvalidArgument,
                                    fmt::format("{}=\"{}\"{} is wrong: give {}", name, value, where, right));
  }
  Config& config = loaded.config;
  if (!config.topology && !config.topology_file.empty()) config.topology = "file:" + config.topology_file;
  return loaded;
}

Environment process_environment() {
  Environment environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == text.npos) continue;
    environment.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

LoadedConfig load_process_config() {
  const Environment environment = process_environment();
  const GatheredSettings gathered = gather_settings(environment, config_files(environment));
  LoadedConfig loaded = load_config(gathered.settings);
  if (!gathered.status.ok()) loaded.status = gathered.status;
  log::configure(loaded.config.log, loaded.config.rank.value_or(-1));
  static std::atomic<bool> reported{false};
  if (!loaded.warnings.empty() && !reported.exchange(true))
    for (const std::string& warning : loaded.warnings) log::warn(log::Subsystem::kConfig, "{}", warning);
  return loaded;
}

}  // namespace hips
