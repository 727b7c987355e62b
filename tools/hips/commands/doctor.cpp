#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "lib/comm/setup/transport_registry.hpp"
#include "tools/doctor/exchange.hpp"
#include "tools/doctor/file_tree.hpp"
#include "tools/doctor/job.hpp"
#include "tools/doctor/judge.hpp"
#include "tools/doctor/probe.hpp"
#include "tools/doctor/report.hpp"
#include "tools/hips/command.hpp"
#include "tools/hips/common/output.hpp"
#include "tools/hips/common/settings.hpp"
#include "tools/hips/job/meeting.hpp"
#include "tools/hips/job/pmix_meeting.hpp"

namespace hips::cli {
namespace {

using doctor::FindingLevel;
using doctor::Findings;

constexpr const char* kDoctorFooter =
    R"(Started alone it checks this node. Under mpirun or srun, or with HIPS_RANK, HIPS_SIZE and HIPS_ROOT, the ranks also
compare their settings and NICs, and try every path that HiPS would use with small and large messages, over shared memory
and over each NIC. Rank 0 prints the report. Every warning and error has a command that fixes it. Exit code: 0 without an
error, else 1.

  hips doctor
  mpirun -n 4 --map-by ppr:1:node hips doctor
  mpirun -x HIPS_TOPO=bcube:2,1 hips doctor        tries the NICs that the topology connects
  HIPS_TRANSPORT=verbs mpirun hips doctor          tries NICs inside a node, too

JSON keys:
  ranks[]:     host kernel version transports limits{} devices[]: name driver model firmware ports[]: state rate mtu
               interface{} rails[] counters{} gids[]: index type address taken
  reach[]:     from to (ranks) over (shm, verbs) from_nic to_nic ok small_ok round_trip_us error
  findings[]:  level (ok, note, warning, error) where text fix
)";

struct DoctorOptions {
  bool json = false;
  bool all_nics = false;
  int timeout_s = 120;
};

/// The facts and findings of one process.
struct OwnReport {
  LoadedConfig loaded;
  doctor::NodeFacts node;
  doctor::RailChoice rails;
  std::string transports;
  Findings findings;
};

OwnReport inspect() {
  OwnReport own;
  own.loaded = read_settings();
  if (own.loaded.status.ok()) own.loaded.status = comm::check_transport_choice(own.loaded.config.transport);
  own.node = doctor::inspect_node(doctor::FileTree());
  own.rails = doctor::choose_rails(own.node, own.loaded.config.rdma);
  own.transports = doctor::transports_text(own.node, own.loaded.config, own.rails);
  own.findings = doctor::judge_node(own.node, own.loaded, own.rails);
  return own;
}

/// Values of variables may have any bytes; those that are not UTF-8 are replaced.
std::string text_of(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

/// Prints the report of one node, with the reason if the ranks could not meet.
int report_alone(const DoctorOptions& options, const OwnReport& own, const Findings& findings) {
  if (options.json) {
    nlohmann::ordered_json json;
    json["ranks"] = nlohmann::ordered_json::array({doctor::node_json(own.node, own.rails, own.transports)});
    json["reach"] = nlohmann::ordered_json::array();
    json["findings"] = doctor::findings_json(findings);
    write_stdout(text_of(json));
  } else {
    write_stdout(doctor::node_text(own.node, own.rails, own.transports) + "\n" +
                 doctor::findings_text(findings));
  }
  return doctor::any_error(findings) ? 1 : 0;
}

/// Reports that an exchange between the ranks failed. Rank 0 prints the missing ranks with its own report.
int report_failure(const DoctorOptions& options, OwnReport own, Rank rank, const Status& status,
                   const std::string& where) {
  if (rank == 0) {
    own.findings.push_back({FindingLevel::kError, where, status.message,
                            status.code == Code::kMismatch
                                ? "install the same HiPS on all nodes"
                                : "check that these ranks run (their output, ps, dmesg) and that TCP passes "
                                  "between the nodes: iptables "
                                  "-I INPUT -p tcp -s HOST -j ACCEPT"});
    return report_alone(options, own, own.findings);
  }
  // Rank 0 reports the errors that it knows; this rank reports those about rank 0.
  if (status.code == Code::kPeerLost || status.code == Code::kInvalidArgument ||
      status.message.find("could not reach rank 0") != std::string::npos)
    std::fprintf(stderr, "hips: doctor: rank %d on %s: %s\n", rank, own.node.name.c_str(),
                 status.message.c_str());
  // The launcher ends the job when the first rank fails: let rank 0 go first.
  std::this_thread::sleep_for(std::chrono::seconds(2));
  return 1;
}

int report_job(const DoctorOptions& options, const OwnReport& own,
               const std::vector<doctor::RankReport>& reports, const std::vector<doctor::Trial>& trials,
               std::size_t untried) {
  Findings findings = doctor::merge_findings(reports);
  for (const Findings& part : {doctor::compare_ranks(reports), doctor::judge_reach(reports, trials, untried)})
    findings.insert(findings.end(), part.begin(), part.end());
  if (options.json) {
    nlohmann::ordered_json json;
    json["ranks"] = nlohmann::ordered_json::array();
    for (const doctor::RankReport& report : reports) json["ranks"].push_back(report.details);
    json["reach"] = doctor::trials_json(reports, trials);
    json["findings"] = doctor::findings_json(findings);
    write_stdout(text_of(json));
  } else {
    write_stdout(doctor::node_text(own.node, own.rails, own.transports) + "\n" +
                 doctor::job_text(reports, trials) + "\n" + doctor::findings_text(findings));
  }
  return doctor::any_error(findings) ? 1 : 0;
}

int run_in_job(const DoctorOptions& options, OwnReport own, comm::TcpRendezvous rendezvous) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  doctor::ProbeOptions probing;
  probing.budget_ns = options.timeout_s * kSecond;
  rendezvous.connect_timeout_ns = std::min(rendezvous.connect_timeout_ns, 30 * kSecond);
  rendezvous.exchange_timeout_ns = probing.timeout_ns + 30 * kSecond;
  auto bootstrap = comm::make_tcp_bootstrap(rendezvous);
  if (!bootstrap)
    return report_failure(options, std::move(own), rendezvous.rank, bootstrap.error(), "meeting");

  doctor::RankReport mine = doctor::report_of(rendezvous.rank, own.node, own.loaded.config, own.rails);
  mine.findings = own.findings;
  mine.details = doctor::node_json(own.node, own.rails, own.transports);
  const doctor::ProbeTransports transports = doctor::ProbeTransports::make(own.loaded.config, mine);
  const auto reports = doctor::exchange_reports(**bootstrap, mine);
  if (!reports) return report_failure(options, std::move(own), rendezvous.rank, reports.error(), "reports");
  const auto paths = doctor::paths_to_try(*reports, options.all_nics);
  auto probed = doctor::probe(**bootstrap, transports, paths, probing);
  if (!probed) return report_failure(options, std::move(own), rendezvous.rank, probed.error(), "reach");
  const auto trials = doctor::exchange_trials(**bootstrap, probed->trials);
  if (!trials) return report_failure(options, std::move(own), rendezvous.rank, trials.error(), "reach");
  if (rendezvous.rank != 0) return 0;
  return report_job(options, own, *reports, *trials, probed->untried);
}

int run(const DoctorOptions& options) {
  const Launcher launcher = detect_launcher([](const char* name) { return std::getenv(name); });
  const Environment environment = process_environment();
  const Meeting meeting =
      value_or_throw(find_meeting("doctor", read_settings().config, environment, launcher));
  if (meeting.how == Meeting::How::kByPmix) {
    std::vector<std::string> again{"doctor", "--timeout", std::to_string(options.timeout_s)};
    if (options.json) again.emplace_back("--json");
    if (options.all_nics) again.emplace_back("--all-nics");
    meet_by_pmix("doctor", again);
  }
  end_when_stuck("doctor", options.timeout_s, meeting.rendezvous.rank);
  OwnReport own = inspect();
  if (meeting.how == Meeting::How::kAlone) return report_alone(options, own, own.findings);
  return run_in_job(options, std::move(own), meeting.rendezvous);
}

}  // namespace

void add_doctor(CLI::App& app) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* command = app.add_subcommand(
      "doctor", "Check NICs, addresses, limits and counters; under mpirun also the paths between ranks");
  command->add_flag("--json", options->json, "Print JSON");
  command->add_flag("--all-nics", options->all_nics,
                    "Try every NIC with every other, to find cables in the wrong place");
  command->add_option("--timeout", options->timeout_s, "Seconds for all trials between ranks")
      ->capture_default_str()
      ->check(CLI::Range(1, 86400));
  command->footer(kDoctorFooter);
  command->callback([options] {
    if (const int code = run(*options); code != 0) throw CLI::RuntimeError(code);
  });
}

}  // namespace hips::cli
