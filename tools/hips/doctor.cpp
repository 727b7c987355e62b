#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "tools/doctor/exchange.hpp"
#include "tools/doctor/file_tree.hpp"
#include "tools/doctor/job.hpp"
#include "tools/doctor/judge.hpp"
#include "tools/doctor/probe.hpp"
#include "tools/doctor/report.hpp"
#include "tools/hips/command.hpp"
#include "tools/hips/meeting.hpp"
#include "tools/hips/pmix_meeting.hpp"
#include "tools/hips/settings.hpp"

namespace hips::cli {
namespace {

using doctor::Findings;
using doctor::Level;

constexpr const char* kDoctorFooter =
    R"(Alone it looks at this host. Under mpirun or srun, or with HIPS_RANK, HIPS_SIZE and HIPS_ROOT set, the ranks also
compare what they have and try every way that HiPS would use: small and large messages over shared memory and over
each NIC. Rank 0 prints. Every warning and error has the line that fixes it. Exit code: 0 without an error, else 1.

  hips doctor
  mpirun -n 4 --map-by ppr:1:node hips doctor
  mpirun -x HIPS_TOPO=bcube:2,1 hips doctor        tries the NICs that the topology joins
  HIPS_TRANSPORT=verbs mpirun hips doctor          tries NICs inside a host, too

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

/// What one process knows before it meets others.
struct Own {
  LoadedConfig loaded;
  doctor::Host host;
  doctor::RailChoice rails;
  std::string transports;
  Findings findings;
};

Own look() {
  Own own;
  own.loaded = read_settings();
  own.host = doctor::look_at_host(doctor::FileTree());
  own.rails = doctor::choose_rails(own.host, own.loaded.config.rdma);
  own.transports = doctor::transports_text(own.host, own.loaded.config, own.rails);
  own.findings = doctor::judge_host(own.host, own.loaded, own.rails);
  return own;
}

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

/// One host, and what came of meeting others, where that failed.
int tell_alone(const DoctorOptions& options, const Own& own, const Findings& findings) {
  if (options.json) {
    nlohmann::ordered_json json;
    json["ranks"] = nlohmann::ordered_json::array({doctor::host_json(own.host, own.rails, own.transports)});
    json["reach"] = nlohmann::ordered_json::array();
    json["findings"] = doctor::findings_json(findings);
    print(json.dump(2) + "\n");
  } else {
    print(doctor::host_text(own.host, own.rails, own.transports) + "\n" + doctor::findings_text(findings));
  }
  return doctor::any_error(findings) ? 1 : 0;
}

/// The ranks did not come together, or not to the end: rank 0 says who is missing, beside what it sees
/// itself.
int tell_failure(const DoctorOptions& options, Own own, Rank rank, const Status& status,
                 const std::string& where) {
  if (rank == 0) {
    own.findings.push_back(
        {Level::kError, where, status.message,
         "see that these ranks run (their own output, ps, dmesg), and that TCP passes between the "
         "hosts: iptables -I INPUT -p tcp -s HOST -j ACCEPT"});
    return tell_alone(options, own, own.findings);
  }
  // Rank 0 tells what it knows; what only this rank knows is that it is not there.
  if (status.code == Code::kPeerLost || status.message.find("could not reach rank 0") != std::string::npos)
    std::fprintf(stderr, "hips: doctor: rank %d on %s: %s\n", rank, own.host.name.c_str(),
                 status.message.c_str());
  // A launcher ends the job with the first rank that fails: rank 0 goes first.
  std::this_thread::sleep_for(std::chrono::seconds(2));
  return 1;
}

int tell_job(const DoctorOptions& options, const Own& own, const std::vector<doctor::RankReport>& reports,
             const std::vector<doctor::Trial>& trials, std::size_t untried) {
  Findings findings = doctor::merge_findings(reports);
  for (const Findings& part : {doctor::compare_ranks(reports), doctor::judge_reach(reports, trials, untried)})
    findings.insert(findings.end(), part.begin(), part.end());
  if (options.json) {
    nlohmann::ordered_json json;
    json["ranks"] = nlohmann::ordered_json::array();
    for (const doctor::RankReport& report : reports) json["ranks"].push_back(report.details);
    json["reach"] = doctor::trials_json(reports, trials);
    json["findings"] = doctor::findings_json(findings);
    print(json.dump(2) + "\n");
  } else {
    print(doctor::host_text(own.host, own.rails, own.transports) + "\n" + doctor::job_text(reports, trials) +
          "\n" + doctor::findings_text(findings));
  }
  return doctor::any_error(findings) ? 1 : 0;
}

int run_together(const DoctorOptions& options, Own own, comm::TcpRendezvous rendezvous) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  doctor::ProbeOptions probing;
  probing.budget_ns = options.timeout_s * kSecond;
  rendezvous.connect_timeout_ns = std::min(rendezvous.connect_timeout_ns, 30 * kSecond);
  rendezvous.exchange_timeout_ns = probing.patience_ns + 30 * kSecond;
  auto bootstrap = comm::make_tcp_bootstrap(rendezvous);
  if (!bootstrap) return tell_failure(options, std::move(own), rendezvous.rank, bootstrap.error(), "meeting");

  doctor::RankReport mine = doctor::report_of(rendezvous.rank, own.host, own.loaded.config, own.rails);
  mine.findings = own.findings;
  mine.details = doctor::host_json(own.host, own.rails, own.transports);
  const doctor::Instruments instruments = doctor::Instruments::make(own.loaded.config, mine);
  const auto reports = doctor::exchange_reports(**bootstrap, mine);
  if (!reports) return tell_failure(options, std::move(own), rendezvous.rank, reports.error(), "reports");
  const auto ways = doctor::ways_to_try(*reports, options.all_nics);
  auto probed = doctor::probe(**bootstrap, instruments, ways, probing);
  if (!probed) return tell_failure(options, std::move(own), rendezvous.rank, probed.error(), "reach");
  const auto trials = doctor::exchange_trials(**bootstrap, probed->trials);
  if (!trials) return tell_failure(options, std::move(own), rendezvous.rank, trials.error(), "reach");
  if (rendezvous.rank != 0) return 0;
  return tell_job(options, own, *reports, *trials, probed->untried);
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
  Own own = look();
  if (meeting.how == Meeting::How::kAlone) return tell_alone(options, own, own.findings);
  return run_together(options, std::move(own), meeting.rendezvous);
}

}  // namespace

void add_doctor(CLI::App& app) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* command = app.add_subcommand(
      "doctor", "Looks at NICs, addresses, limits and counters; under mpirun also at who reaches whom");
  command->add_flag("--json", options->json, "the same for machines");
  command->add_flag("--all-nics", options->all_nics,
                    "tries every NIC with every other, to find cables that are in the wrong place");
  command->add_option("--timeout", options->timeout_s, "seconds for all trials between ranks")
      ->capture_default_str()
      ->check(CLI::Range(1, 86400));
  command->footer(kDoctorFooter);
  command->callback([options] {
    if (const int code = run(*options); code != 0) throw CLI::RuntimeError(code);
  });
}

}  // namespace hips::cli
