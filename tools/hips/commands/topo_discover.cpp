#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "lib/base/log.hpp"
#include "tools/discover/job_report.hpp"
#include "tools/discover/lldp_draft.hpp"
#include "tools/discover/lldpctl.hpp"
#include "tools/discover/reach.hpp"
#include "tools/discover/server.hpp"
#include "tools/discover/view.hpp"
#include "tools/doctor/exchange.hpp"
#include "tools/doctor/file_tree.hpp"
#include "tools/doctor/job.hpp"
#include "tools/hips/command.hpp"
#include "tools/hips/common/output.hpp"
#include "tools/hips/job/meeting.hpp"
#include "tools/hips/job/pmix_meeting.hpp"
#include "topology/discover/draft.hpp"

namespace hips::cli {
namespace {

constexpr const char* kName = "topo discover";

constexpr const char* kDiscoverFooter =
    R"(Started alone it prints this server: NUMA nodes, cores, NICs, and their distances, in the terms of nvidia-smi topo -m.
Under mpirun or srun, or with HIPS_RANK, HIPS_SIZE and HIPS_ROOT, the ranks exchange their NICs and subnets and try which NICs
reach each other over how many hops. Rank 0 then writes a matching topology file; values that were not measured are marked
"# guessed". NICs are those that HiPS would use: RDMA ports (HIPS_IB_HCA), else interfaces (HIPS_SOCKET_IFNAME). The ranks of
one node are one server.

  hips topo discover
  hips topo discover --hwloc node7.xml              another server, on which lstopo node7.xml was run
  mpirun --map-by ppr:1:node hips topo discover -o draft.yaml
  hips topo -t draft.yaml

Formats: text, json, and yaml, which is a topology file (docs/topologies.md). The default is text alone, yaml in a job and for
-o FILE.yaml.

JSON keys, alone:
  host packages cores cpus
  numa_nodes[]: node cores cpus memory_bytes
  nics[]:       name rdma_device port interface pci numa_nodes[] bandwidth_bytes_per_s pcie_bytes_per_s state addresses[]
                to_nics{} and to_numa_nodes[] (X, PIX, PXB, PHB, NODE, SYS, -)
JSON keys, between ranks:
  servers[]:    host ranks nics[]: name address subnet bandwidth_bytes_per_s
  ways[]:       a a_nic b b_nic (indices in the lists above) reached hops (1: no router) latency_ns; null: unknown
  shape fits (false: no family matches the wiring) notes[]
)";

struct DiscoverOptions {
  std::string hwloc;
  std::string format;  ///< "": the default
  std::string output;
  int timeout_s = 120;
};

/// What one server alone writes: a topology file if -o names one.
std::string format_alone(const DiscoverOptions& options) {
  if (!options.format.empty()) return options.format;
  return options.output.ends_with(".yaml") || options.output.ends_with(".yml") ? "yaml" : "text";
}

/// Writes to the file of -o, or to stdout.
void write_output(const DiscoverOptions& options, std::string text) {
  if (!text.ends_with('\n')) text += '\n';
  if (options.output.empty()) {
    write_stdout(text);
    return;
  }
  std::ofstream file(options.output, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) {
    throw Error(Status::error(
        Code::kSystem, fmt::format("{}: cannot write {}: {}", kName, options.output, std::strerror(errno))));
  }
}

/// Writes the draft of a job or of a single server.
void write_draft(const DiscoverOptions& options, const topology::Observation& seen, const std::string& format,
                 std::vector<topology::LldpHost> hosts = {}) {
  const topology::Draft draft = value_or_throw(discover::draft_with_lldp(seen, std::move(hosts)));
  write_output(options, format == "json"   ? discover::job_json(seen, draft)
                        : format == "text" ? discover::job_text(seen, draft)
                                           : topology::draft_text(draft));
  if (!draft.fits)
    fmt::print(
        stderr,
        "hips: {}: no family matches the observed subnets; the draft is the most similar rack. hips topo "
        "discover --format text prints the observations\n",
        kName);
}

/// The NICs of an hwloc file that HiPS would use: RDMA ports, or all interfaces if there are none.
topology::Observation observation_of(const discover::Server& server) {
  topology::SeenServer seen{server.host, 1, {}};
  const bool has_rdma =
      std::ranges::any_of(server.nics, [](const discover::ServerNic& nic) { return !nic.rdma.empty(); });
  for (const discover::ServerNic& nic : server.nics)
    if (!has_rdma || !nic.rdma.empty()) seen.nics.push_back({nic.name(), {}, {}, nic.bandwidth_bytes_per_s});
  return {{std::move(seen)}, {}};
}

void run_on_file(const DiscoverOptions& options) {
  const discover::Server server = value_or_throw(discover::read_server(options.hwloc));
  if (format_alone(options) == "yaml") return write_draft(options, observation_of(server), "yaml");
  write_output(options,
               options.format == "json" ? discover::server_json(server) : discover::server_text(server));
}

struct OwnNode {
  Config config;
  doctor::NodeFacts node;
  doctor::RailChoice rails;
};

OwnNode inspect_own_node() {
  OwnNode own;
  LoadedConfig loaded = load_process_config();
  if (!loaded.status.ok()) throw Error(loaded.status);
  own.config = std::move(loaded.config);
  own.node = doctor::inspect_node(doctor::FileTree());
  own.rails = doctor::choose_rails(own.node, own.config.rdma);
  return own;
}

void run_alone(const DiscoverOptions& options, const OwnNode& own) {
  if (format_alone(options) == "yaml") {
    const auto view = value_or_throw(discover::view_of(0, own.node, own.rails, own.config));
    const std::vector<discover::RankView> views{view};
    return write_draft(options, discover::observation_of(views, discover::servers_of(views)), "yaml");
  }
  const discover::Server server = value_or_throw(discover::inspect_server(own.node));
  write_output(options,
               options.format == "json" ? discover::server_json(server) : discover::server_text(server));
}

/// What lldpd tells; nothing where it does not run, which the log says.
std::vector<topology::LldpNeighbour> own_neighbours(const discover::RankView& view) {
  auto heard = discover::ask_lldpd();
  if (!heard) {
    log::info(log::Subsystem::kTools, "{}: no neighbours by LLDP: {}", view.host, heard.error().message);
    return {};
  }
  return discover::neighbours_of(view.nics, *std::move(heard));
}

/// All-gathers the views of all ranks. An error of one rank is an error on all.
Result<std::vector<discover::RankView>> gather_views(comm::Bootstrap& bootstrap, const OwnNode& own) {
  auto mine = discover::view_of(bootstrap.rank(), own.node, own.rails, own.config);
  if (mine) mine->neighbours = own_neighbours(*mine);
  const auto all = comm::SetUpExchanges(bootstrap).allgather_outcomes(
      mine ? Result<comm::Blob>(discover::encode(*mine)) : fail(mine.error()));
  if (!all) return fail(all.error());
  std::vector<discover::RankView> views;
  for (const comm::Blob& blob : *all) {
    auto view = discover::decode_view(blob);
    if (!view) return fail(std::move(view).error());
    views.push_back(*std::move(view));
  }
  return views;
}

/// Probes RDMA between ports of one subnet, like hips doctor.
Result<std::vector<doctor::Trial>> try_rdma(comm::Bootstrap& bootstrap, const OwnNode& own,
                                            const std::vector<doctor::ProbePath>& paths, int timeout_s) {
  if (paths.empty()) return std::vector<doctor::Trial>{};
  doctor::RankReport report = doctor::report_of(bootstrap.rank(), own.node, own.config, own.rails);
  const doctor::ProbeTransports transports = doctor::ProbeTransports::make(own.config, report);
  doctor::ProbeOptions probing;
  probing.budget_ns = std::int64_t{timeout_s} * 1'000'000'000;
  const auto probed = doctor::probe(bootstrap, transports, paths, probing);
  if (!probed) return fail(probed.error());
  return doctor::exchange_trials(bootstrap, probed->trials);
}

/// What the ranks of a job see, and what LLDP tells their servers.
struct SeenJob {
  topology::Observation seen;
  std::vector<topology::LldpHost> hosts;
};

/// Collects the observations of all ranks, on every rank.
Result<SeenJob> observe_job(comm::Bootstrap& bootstrap, const OwnNode& own, int timeout_s) {
  const auto views = gather_views(bootstrap, own);
  if (!views) return fail(views.error());
  const auto servers = discover::servers_of(*views);
  topology::Observation seen = discover::observation_of(*views, servers);
  const auto paths = discover::paths_to_try(seen);
  auto tried = discover::try_by_packets(bootstrap, *views, servers, paths);
  if (!tried) return fail(std::move(tried).error());
  const auto trials = try_rdma(bootstrap, own, discover::rdma_paths(*views, servers, paths), timeout_s);
  if (!trials) return fail(trials.error());
  discover::add_trials(servers, *trials, *tried);
  seen.paths = *std::move(tried);
  return SeenJob{std::move(seen), discover::lldp_hosts(*views, servers)};
}

int run_in_job(const DiscoverOptions& options, const OwnNode& own, comm::TcpRendezvous rendezvous,
               bool launched) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  rendezvous.connect_timeout_ns = std::min(rendezvous.connect_timeout_ns, 30 * kSecond);
  rendezvous.exchange_timeout_ns = doctor::ProbeOptions{}.timeout_ns + 30 * kSecond;
  auto bootstrap = comm::make_tcp_bootstrap(rendezvous);
  auto seen =
      bootstrap ? observe_job(**bootstrap, own, options.timeout_s) : Result<SeenJob>(fail(bootstrap.error()));
  if (rendezvous.rank == 0) {
    SeenJob job = value_or_throw(std::move(seen));
    write_draft(options, job.seen, options.format.empty() ? "yaml" : options.format, std::move(job.hosts));
    return 0;
  }
  if (seen) return 0;
  // Rank 0 reports the errors that all ranks know; this rank reports those about rank 0.
  const Status& status = seen.error();
  if (status.code == Code::kPeerLost || status.message.find("could not reach rank 0") != std::string::npos)
    fmt::print(stderr, "hips: {}: rank {} on {}: {}\n", kName, rendezvous.rank, own.node.name,
               status.message);
  // The launcher ends the job when the first rank fails: let rank 0 go first.
  if (launched) std::this_thread::sleep_for(std::chrono::seconds(2));
  return 1;
}

int run(const DiscoverOptions& options) {
  if (!options.hwloc.empty()) {
    run_on_file(options);
    return 0;
  }
  const Launcher launcher = detect_launcher([](const char* name) { return std::getenv(name); });
  const Environment environment = process_environment();
  const Meeting meeting =
      value_or_throw(find_meeting(kName, load_config(environment).config, environment, launcher));
  if (meeting.how == Meeting::How::kByPmix) {
    std::vector<std::string> again{"topo", "discover", "--timeout", std::to_string(options.timeout_s)};
    if (!options.format.empty()) again.insert(again.end(), {"--format", options.format});
    if (!options.output.empty()) again.insert(again.end(), {"-o", options.output});
    meet_by_pmix(kName, again);
  }
  end_when_stuck(kName, options.timeout_s, meeting.rendezvous.rank);
  const OwnNode own = inspect_own_node();
  if (meeting.how == Meeting::How::kRendezvous)
    return run_in_job(options, own, meeting.rendezvous, launcher.kind != LauncherKind::kNone);
  run_alone(options, own);
  return 0;
}

}  // namespace

void add_topo_discover(CLI::App& topo) {
  auto options = std::make_shared<DiscoverOptions>();
  CLI::App* command = topo.add_subcommand(
      "discover", "Show the NICs of this server; under mpirun draft a topology file of all servers");
  command
      ->add_option("--hwloc", options->hwloc,
                   "Describe another server, on which lstopo FILE.xml has written this file")
      ->type_name("FILE.xml");
  command
      ->add_option("--format", options->format,
                   "text, json or yaml; default: text alone, yaml in a job and for -o FILE.yaml")
      ->check(CLI::IsMember({"text", "json", "yaml"}));
  command->add_option("-o,--output", options->output, "Write to a file instead of stdout")->type_name("FILE");
  command->add_option("--timeout", options->timeout_s, "Seconds for all RDMA trials between ranks")
      ->capture_default_str()
      ->check(CLI::Range(1, 86400));
  command->footer(kDiscoverFooter);
  command->callback([options, &topo] {
    for (const CLI::Option* option : topo.get_options())
      if (option->count() > 0)
        throw Error(Status::error(Code::kInvalidArgument,
                                  fmt::format("{}: {} is an option of hips topo, not of discover; remove it",
                                              kName, option->get_name())));
    if (const int code = run(*options); code != 0) throw CLI::RuntimeError(code);
  });
}

}  // namespace hips::cli
