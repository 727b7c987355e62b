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

#include "tools/discover/job_report.hpp"
#include "tools/discover/reach.hpp"
#include "tools/discover/server.hpp"
#include "tools/discover/view.hpp"
#include "tools/doctor/exchange.hpp"
#include "tools/doctor/file_tree.hpp"
#include "tools/doctor/job.hpp"
#include "tools/hips/command.hpp"
#include "tools/hips/meeting.hpp"
#include "tools/hips/pmix_meeting.hpp"
#include "topology/discover/draft.hpp"

namespace hips::cli {
namespace {

constexpr const char* kName = "topo discover";

constexpr const char* kDiscoverFooter =
    R"(Alone it prints this server: NUMA nodes, cores, NICs, and how far apart these are, in the words of nvidia-smi topo -m.
Under mpirun or srun, or with HIPS_RANK, HIPS_SIZE and HIPS_ROOT set, the ranks tell each other their NICs and subnets, try
who reaches whom by which NIC and over how many hops, and rank 0 writes a topology file that fits. What nobody has measured
is marked "# guessed" there. NICs are those that HiPS would use: RDMA ports (HIPS_IB_HCA), else interfaces
(HIPS_SOCKET_IFNAME). Ranks that share a host are one server.

  hips topo discover
  hips topo discover --hwloc node7.xml              another server, of which lstopo node7.xml was run there
  mpirun --map-by ppr:1:node hips topo discover -o draft.yaml
  hips topo -t draft.yaml

Formats: text, json, and yaml, a topology file (docs/topologies.md). Alone text is printed, between ranks yaml.

JSON keys, alone:
  host packages cores cpus
  numa_nodes[]: node cores cpus memory_bytes
  nics[]:       name rdma_device port interface pci numa_nodes[] bandwidth_bytes_per_s pcie_bytes_per_s state addresses[]
                to_nics{} and to_numa_nodes[] (X, PIX, PXB, PHB, NODE, SYS, -)
JSON keys, between ranks:
  servers[]:    host ranks nics[]: name address subnet bandwidth_bytes_per_s
  ways[]:       a a_nic b b_nic (places in the lists above) reached hops (1: no router) latency_ns; null: not known
  shape fits (false: no family is wired like this) notes[]
)";

struct DiscoverOptions {
  std::string hwloc;
  std::string format;  ///< "": as the occasion has it
  std::string output;
  int timeout_s = 120;
};

/// To the file of -o, or to stdout.
void write_out(const DiscoverOptions& options, std::string text) {
  if (!text.ends_with('\n')) text += '\n';
  if (options.output.empty()) {
    std::fwrite(text.data(), 1, text.size(), stdout);
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

/// Draft of a job, or of a server by itself.
void tell(const DiscoverOptions& options, const topology::Observation& seen, const std::string& format) {
  const topology::Draft draft = value_or_throw(topology::draft_topology(seen));
  write_out(options, format == "json"   ? discover::job_json(seen, draft)
                     : format == "text" ? discover::job_text(seen, draft)
                                        : topology::draft_text(draft));
  if (!draft.fits)
    fmt::print(stderr,
               "hips: {}: no family is wired like the subnets seen; the draft is the nearest rack, and "
               "hips topo discover --format text shows what was seen\n",
               kName);
}

/// The NICs of a file of hwloc that HiPS would use: RDMA ports, or all interfaces where there are none.
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
  if (options.format == "yaml") return tell(options, observation_of(server), "yaml");
  write_out(options,
            options.format == "json" ? discover::server_json(server) : discover::server_text(server));
}

struct OwnHost {
  Config config;
  doctor::Host host;
  doctor::RailChoice rails;
};

OwnHost look_at_own() {
  OwnHost own;
  LoadedConfig loaded = load_process_config();
  if (!loaded.status.ok()) throw Error(loaded.status);
  own.config = std::move(loaded.config);
  own.host = doctor::look_at_host(doctor::FileTree());
  own.rails = doctor::choose_rails(own.host, own.config.rdma);
  return own;
}

void run_alone(const DiscoverOptions& options, const OwnHost& own) {
  if (options.format == "yaml") {
    const auto view = value_or_throw(discover::view_of(0, own.host, own.rails, own.config));
    const std::vector<discover::RankView> views{view};
    return tell(options, discover::observation_of(views, discover::servers_of(views)), "yaml");
  }
  const discover::Server server = value_or_throw(discover::look_at_server(own.host));
  write_out(options,
            options.format == "json" ? discover::server_json(server) : discover::server_text(server));
}

/// What every rank sees of its own, at every rank; a rank that cannot look stops all.
Result<std::vector<discover::RankView>> gather_views(comm::Bootstrap& bootstrap, const OwnHost& own) {
  auto mine = discover::view_of(bootstrap.rank(), own.host, own.rails, own.config);
  if (Status agreed = comm::agree(bootstrap, mine ? Status::success() : mine.error()); !agreed.ok())
    return fail(std::move(agreed));
  const auto all = bootstrap.allgather(discover::encode(*mine));
  if (!all) return fail(all.error());
  std::vector<discover::RankView> views;
  for (const comm::Blob& blob : *all) {
    auto view = discover::decode_view(blob);
    if (!view) return fail(std::move(view).error());
    views.push_back(*std::move(view));
  }
  return views;
}

/// RDMA between ports of one subnet, as hips doctor tries it.
Result<std::vector<doctor::Trial>> try_rdma(comm::Bootstrap& bootstrap, const OwnHost& own,
                                            const std::vector<doctor::Way>& ways, int timeout_s) {
  if (ways.empty()) return std::vector<doctor::Trial>{};
  doctor::RankReport report = doctor::report_of(bootstrap.rank(), own.host, own.config, own.rails);
  const doctor::Instruments instruments = doctor::Instruments::make(own.config, report);
  doctor::ProbeOptions probing;
  probing.budget_ns = std::int64_t{timeout_s} * 1'000'000'000;
  const auto probed = doctor::probe(bootstrap, instruments, ways, probing);
  if (!probed) return fail(probed.error());
  return doctor::exchange_trials(bootstrap, probed->trials);
}

/// Everything that the ranks see together, at every rank.
Result<topology::Observation> look_together(comm::Bootstrap& bootstrap, const OwnHost& own, int timeout_s) {
  const auto views = gather_views(bootstrap, own);
  if (!views) return fail(views.error());
  const auto servers = discover::servers_of(*views);
  topology::Observation seen = discover::observation_of(*views, servers);
  const auto ways = discover::ways_to_try(seen);
  auto tried = discover::try_by_packets(bootstrap, *views, servers, ways);
  if (!tried) return fail(std::move(tried).error());
  const auto trials = try_rdma(bootstrap, own, discover::rdma_ways(*views, servers, ways), timeout_s);
  if (!trials) return fail(trials.error());
  discover::add_trials(servers, *trials, *tried);
  seen.paths = *std::move(tried);
  return seen;
}

int run_together(const DiscoverOptions& options, const OwnHost& own, comm::TcpRendezvous rendezvous,
                 bool launched) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  rendezvous.connect_timeout_ns = std::min(rendezvous.connect_timeout_ns, 30 * kSecond);
  rendezvous.exchange_timeout_ns = doctor::ProbeOptions{}.patience_ns + 30 * kSecond;
  auto bootstrap = comm::make_tcp_bootstrap(rendezvous);
  auto seen = bootstrap ? look_together(**bootstrap, own, options.timeout_s)
                        : Result<topology::Observation>(fail(bootstrap.error()));
  if (rendezvous.rank == 0) {
    tell(options, value_or_throw(std::move(seen)), options.format.empty() ? "yaml" : options.format);
    return 0;
  }
  if (seen) return 0;
  // Rank 0 tells what all know; what only this rank knows is that it is not there.
  const Status& status = seen.error();
  if (status.code == Code::kPeerLost || status.message.find("could not reach rank 0") != std::string::npos)
    fmt::print(stderr, "hips: {}: rank {} on {}: {}\n", kName, rendezvous.rank, own.host.name,
               status.message);
  // A launcher ends the job with the first rank that fails: rank 0 goes first.
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
  const OwnHost own = look_at_own();
  if (meeting.how == Meeting::How::kRendezvous)
    return run_together(options, own, meeting.rendezvous, launcher.kind != LauncherKind::kNone);
  run_alone(options, own);
  return 0;
}

}  // namespace

void add_topo_discover(CLI::App& topo) {
  auto options = std::make_shared<DiscoverOptions>();
  CLI::App* command = topo.add_subcommand(
      "discover", "Looks at this server's NICs; under mpirun drafts a topology file of all servers");
  command
      ->add_option("--hwloc", options->hwloc,
                   "another server, as lstopo FILE.xml has written it there, instead of this one")
      ->type_name("FILE.xml");
  command->add_option("--format", options->format, "text, json, or yaml; default: text alone, yaml in a job")
      ->check(CLI::IsMember({"text", "json", "yaml"}));
  command->add_option("-o,--output", options->output, "write to a file instead of stdout")->type_name("FILE");
  command->add_option("--timeout", options->timeout_s, "seconds for all trials over RDMA between ranks")
      ->capture_default_str()
      ->check(CLI::Range(1, 86400));
  command->footer(kDiscoverFooter);
  command->callback([options, &topo] {
    for (const CLI::Option* option : topo.get_options())
      if (option->count() > 0)
        throw Error(Status::error(Code::kInvalidArgument,
                                  fmt::format("{}: {} belongs to hips topo without discover; leave it out",
                                              kName, option->get_name())));
    if (const int code = run(*options); code != 0) throw CLI::RuntimeError(code);
  });
}

}  // namespace hips::cli
